"""A private member of Spark that the plug-in needs and does not find is named in a sentence."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

STATE = "org.apache.spark.sql.execution.streaming.state.RocksDB"


def test_this_version_of_spark_has_all_of_them(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    members = jvm.org.apache.spark.sql.penstock.SparkMembers
    members.check()
    # Without some of them nothing is refused, but what rests on them would be off.
    assert members.missing().mkString() == ""


@pytest.mark.parametrize(
    ("kind", "name", "of_type"),
    [
        ("field", "moved", "org.rocksdb.RocksDB"),
        ("field", "db", "java.lang.String"),
        ("method", "moved", "java.lang.Long"),
    ],
)
def test_one_that_is_missing_is_named_with_the_version_of_spark(
    spark: SparkSession, kind: str, name: str, of_type: str
) -> None:
    jvm: Any = spark._jvm
    loaded = jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass
    ours = jvm.org.apache.spark.sql.penstock
    make = ours.SparkField if kind == "field" else ours.SparkMethod
    member = make(loaded(STATE), name, loaded(of_type))
    with pytest.raises(Exception, match=r"use Spark 4\.3") as raised:
        member.check()
    says = f"Spark {spark.version} has no {kind} {name} of class {STATE} with type {of_type}"
    assert says in str(raised.value)
