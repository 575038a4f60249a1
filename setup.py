"""Gives the three folders of this repository their installed names; everything else stands in pyproject.toml."""

from setuptools import find_namespace_packages, setup

ROOTS = ("domain", "projections", "services")
# Namespace packages too, so that a folder that holds nothing but .sql files is not left out of a wheel.
FOUND = [
    name
    for root in ROOTS
    for name in [root, *(f"{root}.{sub}" for sub in find_namespace_packages(root))]
    if "__pycache__" not in name
]

setup(
    packages=[f"remembrancer.{name}" for name in FOUND],
    package_dir={f"remembrancer.{root}": root for root in ROOTS},
)
