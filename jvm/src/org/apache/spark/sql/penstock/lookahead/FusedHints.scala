// Scala because: it writes the Java code that Spark compiles for a stage of a batch.
package org.apache.spark.sql.penstock.lookahead

import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode, GenerateUnsafeProjection}

/**
 * The code by which a row of generated code is hinted. It stands in a block of its own, so that
 * nothing it declares meets the rest, and what it throws is caught there.
 */
private[lookahead] final class FusedHints(
    ctx: CodegenContext,
    input: Seq[ExprCode],
    source: HintSource,
    hints: String) {

  def code: String = {
    val error = ctx.freshName("error")
    s"""$hints.passed();
       |if ($hints.isOn()) {
       |  try {
       |    ${source.keys.map(ofKey).mkString("\n")}
       |  } catch (Throwable $error) {
       |    $hints.failed($error);
       |  }
       |}""".stripMargin
  }

  private def ofKey(bound: BoundKey): String = {
    ctx.currentVars = input
    ctx.INPUT_ROW = null
    val conditions = bound.conditions.map(_.genCode(ctx))
    val key = GenerateUnsafeProjection.createCode(ctx, bound.key)
    ctx.currentVars = input
    val partition = bound.partition.get.genCode(ctx)
    val at = bound.at.map(_.genCode(ctx))
    val atValue = at.fold(NoTime)(time => s"(${time.isNull} ? $NoTime : ${time.value})")
    val added =
      s"""${key.code}
         |${partition.code}
         |${at.fold("")(_.code.toString)}
         |$hints.add(${key.value}, ${partition.value}, $atValue);""".stripMargin
    s"{ ${conditions.foldRight(added)(guarded)} }"
  }

  /** The next condition is looked at, and the key computed, only where this one holds. */
  private def guarded(condition: ExprCode, body: String): String =
    s"""${condition.code}
       |if (!${condition.isNull} && ${condition.value}) {
       |  $body
       |}""".stripMargin

  private def NoTime: String = "Long.MIN_VALUE"
}
