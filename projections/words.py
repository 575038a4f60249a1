"""stub"""
import re, zlib
def memory_terms(text):
    return [zlib.crc32(w.encode())-2**31 for w in re.findall(r"\w+", text.casefold())]
def query_terms(text):
    return memory_terms(text)
