// Scala because: it prints the keys that the jar itself was compiled with.
package penstock.testing

import com.fasterxml.jackson.databind.node.ObjectNode

import penstock.settings.{Key, Keys, OptionKeys}
import penstock.wire.Json

/**
 * The settings and the options that the plug-in knows, as JSON, for the Python side to compare with
 * its own: a list of `{"key", "default", "unit", "min", "max"}`, null where there is none.
 */
object SettingsVector {

  /** Prints the settings; with the argument `options`, the options of `format("penstock")`. */
  def main(arguments: Array[String]): Unit =
    println(if (arguments.contains("options")) options else settings)

  def settings: String = listed(Keys.all)

  def options: String = listed(OptionKeys.all)

  private def listed(keys: Seq[Key[_]]): String = {
    val list = Json.createArrayNode()
    keys.foreach(key => list.add(described(key)))
    list.toString
  }

  private def described(key: Key[_]): ObjectNode = {
    val node = Json.createObjectNode().put("key", key.name)
    key.default match {
      case Some(number: Long) => node.put("default", number)
      case Some(flag: Boolean) => node.put("default", flag)
      case Some(other) => node.put("default", other.toString)
      case None => node.putNull("default")
    }
    node.put("unit", key.unit.orNull)
    bound(node, "min", key.min)
    bound(node, "max", key.max)
  }

  private def bound(node: ObjectNode, name: String, limit: Option[Long]): ObjectNode =
    limit.fold(node.putNull(name))(number => node.put(name, number))
}
