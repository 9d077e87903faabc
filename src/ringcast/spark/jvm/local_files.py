"""Files of this machine, as Spark's Java writes them: without a process for each, and without a second file for each.

Hadoop's file system for local files sets the permissions of what it creates by starting `chmod`, twice for each file,
because a file of checksums goes with it. A small micro-batch of a stream writes some twenty files: starting forty
processes then takes longer than all else. Here files have the permissions that the process's umask gives, as those of
any other program, and disks check themselves what they hold.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

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
    """From now on, in this process's Java. Says whether it is so: where Java's own classes are closed to us, files are
    written as Hadoop does it."""
    jvm = spark._jvm
    with contextlib.suppress(Exception):
        # The compiler is the one by which Spark compiles queries.
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.cook(_SOURCE)
        conf = jvm.org.apache.hadoop.conf.Configuration(spark.sparkContext._jsc.hadoopConfiguration())
        conf.setClassLoader(compiler.getClassLoader())
        conf.set("fs.file.impl", _NAME)
        # Java keeps one object for all files of a scheme: the first that is asked for stays.
        files = jvm.org.apache.hadoop.fs.FileSystem
        before = files.getLocal(conf)
        if before.getClass().getName() != _NAME:
            before.close()
        return bool(files.getLocal(conf).getClass().getName() == _NAME)
    return False
