"""Makes the long description, README.md with absolute links, and the stubs of a wheel. pyproject.toml has everything else."""

import re
import runpy
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

REPOSITORY = "https://github.com/relaylang/relaylang/blob/main/"
FILES = "https://raw.githubusercontent.com/relaylang/relaylang/main/"


def absolute(text: str) -> str:
    """A Markdown text of the repository's top folder with its relative links made absolute."""
    link = re.compile(r"(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)\s]+)\)")
    return link.sub(lambda m: f"{m[1]}[{m[2]}]({FILES if m[1] else REPOSITORY}{m[3]})", text)


class BuildWithStubs(build_py):
    """The packages, with the stubs that `scripts/make_stubs.py` writes from the operators' records."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            stubs = runpy.run_path(str(Path(__file__).with_name("scripts") / "make_stubs.py"))
            stubs["write"](Path(self.build_lib))


readme = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
setup(
    long_description=absolute(readme),
    long_description_content_type="text/markdown",
    cmdclass={"build_py": BuildWithStubs},
)
