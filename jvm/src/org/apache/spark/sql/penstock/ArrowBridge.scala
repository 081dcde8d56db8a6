// Scala because: Spark's Arrow types and allocator are Java objects, which tasks read and write
// rows with.
package org.apache.spark.sql.penstock

import org.apache.arrow.memory.BufferAllocator
import org.apache.arrow.vector.types.pojo.Schema
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.ArrowUtils

/** Spark's own mapping between its types and Arrow's, and its Arrow allocator. */
object ArrowBridge {
  def sparkSchema(schema: Schema): StructType = ArrowUtils.fromArrowSchema(schema)

  def arrowSchema(schema: StructType): Schema =
    ArrowUtils.toArrowSchema(
      schema,
      timeZoneId = "UTC",
      errorOnDuplicatedFieldNames = true,
      largeVarTypes = false)

  def allocator(name: String): BufferAllocator =
    ArrowUtils.rootAllocator.newChildAllocator(name, 0, Long.MaxValue)
}
