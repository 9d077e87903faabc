"""Files of this machine, as Spark's Java writes them: without a process for each, and without a second file for each.

Hadoop's file system for local files sets the permissions of what it creates by starting `chmod`, twice for each file,
because a file of checksums goes with it. A small micro-batch of a stream writes some twenty files: starting forty
processes then takes longer than all else. Here files have the permissions that the process's umask gives, as those of
any other program, and disks check themselves what they hold.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NAME = "ringcast.LocalFiles"
_SOURCE = """
package ringcast;

import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

public class LocalFiles extends LocalFileSystem {
    public LocalFiles() {
        super(new Plain());
        setWriteChecksum(false);
    }

    public static class Plain extends RawLocalFileSystem {
        public void setPermission(Path path, FsPermission permission) {
        }
    }
}
"""


def write_plainly(spark: SparkSession) -> bool:
    """From now on, in this process's Java. Says whether it is so: where it is not, files are written as Hadoop does."""
    jvm: Any = spark._jvm
    with contextlib.suppress(Exception):
        files = jvm.org.apache.hadoop.fs.FileSystem
        conf = jvm.org.apache.hadoop.conf.Configuration(spark.sparkContext._jsc.hadoopConfiguration())
        # Java keeps one object for all local files: what is asked for first stays until it is closed.
        kept = files.getLocal(conf)
        if kept.getClass().getName() != _NAME:
            compiler = jvm.org.codehaus.janino.SimpleCompiler()  # by which Spark compiles queries
            compiler.cook(_SOURCE)
            conf.setClassLoader(compiler.getClassLoader())
            conf.set("fs.file.impl", _NAME)
            kept.close()
            kept = files.getLocal(conf)
        return bool(kept.getClass().getName() == _NAME)
    return False
