"""Puts script/gothrottle.lua of the repository into the package, which has it if it was packed."""
import pathlib
import shutil

from setuptools import setup
from setuptools.command.build_py import build_py


class Build(build_py):
    def run(self):
        super().run()
        script = pathlib.Path(__file__).resolve().parents[2] / "script" / "gothrottle.lua"
        if script.exists():
            shutil.copy(script, pathlib.Path(self.build_lib, "gothrottle"))


setup(cmdclass={"build_py": Build})
