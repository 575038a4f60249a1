"""Small PDFs, written by hand: so that what reads them is not what wrote them.

pdf(["First page.", "Second page,\\nsecond line."])
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Sequence


def pdf(pages: Sequence[str], *, compress: bool = True) -> bytes:
    """A PDF with these texts (Latin-1), one a page, in Helvetica; an empty text is a page without one."""
    return _file(_objects([_drawn(text) for text in pages], compress))


def bomb(megabytes: int) -> bytes:
    """A PDF of some kilobytes whose one page unpacks to so many megabytes of drawing."""
    return _file(_objects([b"BT /F1 11 Tf\n" + b"(bomb) Tj T*\n" * (megabytes * 1_000_000 // 13) + b"ET"], True))


def encrypted(data: bytes, password: str) -> bytes:
    """The same PDF, locked with AES."""
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(data)))
    writer.encrypt(password, algorithm="AES-256")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def _objects(pages: Sequence[bytes], compress: bool) -> list[bytes]:
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for n, content in enumerate(pages):
        page = f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {5 + 2 * n} 0 R "
        objects.append(f"{page}/Resources << /Font << /F1 3 0 R >> >> >>".encode())
        objects.append(_stream(content, compress))
    return objects


def _drawn(text: str) -> bytes:
    escaped = text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
    lines = [f"({line}) Tj T*" for line in escaped.split("\n")] if text else []
    return "\n".join(["BT /F1 11 Tf 50 800 Td 14 TL", *lines, "ET"]).encode("latin-1")


def _stream(content: bytes, compress: bool) -> bytes:
    data = zlib.compress(content, 9) if compress else content
    how = b"/Filter /FlateDecode " if compress else b""
    return b"<< %b/Length %d >>\nstream\n%b\nendstream" % (how, len(data), data)


def _file(objects: Sequence[bytes]) -> bytes:
    out = bytearray(b"%PDF-1.7\n")
    places = []
    for n, body in enumerate(objects, start=1):
        places.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (n, body)
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % at for at in places)
    out += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, table)
    return bytes(out)
