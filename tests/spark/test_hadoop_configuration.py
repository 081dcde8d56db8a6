"""Hadoop's configuration is broadcast without the notes of where its properties came from."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark.sql import SparkSession

WAIT_S = 10.0
CONFIGURATION = "org.apache.hadoop.conf.Configuration"


@pytest.fixture
def conf(spark: SparkSession) -> Any:
    """The Hadoop configuration that Spark copies for every batch."""
    return spark._jsc.hadoopConfiguration()


def notes(spark: SparkSession, conf: Any) -> Any:
    jvm: Any = spark._jvm
    return jvm.org.apache.spark.sql.penstock.SparkMembers.ConfigurationSources().of(conf)


def bytes_of(spark: SparkSession, conf: Any) -> int:
    """The size of what Spark would broadcast."""
    jvm: Any = spark._jvm
    buffer = jvm.java.io.ByteArrayOutputStream()
    conf.write(jvm.java.io.DataOutputStream(buffer))
    return int(buffer.size())


def test_the_notes_are_gone_and_the_properties_are_there(spark: SparkSession, conf: Any) -> None:
    jvm: Any = spark._jvm
    as_it_comes = jvm.org.apache.hadoop.conf.Configuration()
    assert conf.size() >= as_it_comes.size() > 400
    assert conf.get("io.map.index.skip") == as_it_comes.get("io.map.index.skip") == "0"
    spark.range(1).count()
    assert notes(spark, conf).isEmpty()
    assert bytes_of(spark, conf) < bytes_of(spark, as_it_comes) * 2 / 3


def test_notes_that_a_library_brings_back_go_with_the_next_job(
    spark: SparkSession, conf: Any
) -> None:
    conf.reloadConfiguration()
    assert conf.get("io.map.index.skip") == "0"
    assert not notes(spark, conf).isEmpty()
    spark.range(1).count()
    ends = time.monotonic() + WAIT_S
    while not notes(spark, conf).isEmpty() and time.monotonic() < ends:
        time.sleep(0.05)
    assert notes(spark, conf).isEmpty()


@contextmanager
def logged(spark: SparkSession, name: str) -> Iterator[Any]:
    """A text of what the logger of this name says within, at level WARN or above."""
    jvm: Any = spark._jvm
    log4j = jvm.org.apache.logging.log4j
    text = jvm.java.io.StringWriter()
    appender = log4j.core.appender.WriterAppender.createAppender(
        None, None, text, "logged", False, True
    )
    appender.start()
    log4j.core.config.Configurator.setLevel(name, log4j.Level.WARN)
    logger = log4j.LogManager.getLogger(name)
    logger.addAppender(appender)
    try:
        yield text
    finally:
        logger.removeAppender(appender)
        log4j.core.config.Configurator.setLevel(name, log4j.Level.ERROR)


def test_a_hadoop_that_keeps_them_elsewhere_is_left_alone_which_is_said_once(
    spark: SparkSession, conf: Any
) -> None:
    jvm: Any = spark._jvm
    loaded = jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass
    moved = jvm.org.apache.spark.sql.penstock.SparkField(
        loaded(CONFIGURATION), "moved", loaded("java.util.Map")
    )
    sources = jvm.penstock.plugin.ConfigurationSources(conf, moved)
    size = conf.size()
    with logged(spark, "penstock.plugin.ConfigurationSources") as text:
        assert not sources.forget()
        assert not sources.forget()
    assert text.toString().count("keeps the sources of its configuration elsewhere") == 1
    assert conf.size() == size
