// Scala because: Spark shows what is thrown on its threads; `penstock run` matches these full
// class names, so they stay in this package.
package penstock

/** The kinds of error of `penstock.errors`, by who must act. The code is the server's. */
sealed abstract class PenstockException(val code: String, message: String, cause: Throwable = null)
    extends RuntimeException(s"$message [penstock: $code]", cause)

/** The same call may succeed later; it was already repeated for as long as the settings say. */
final class TryAgain(code: String, message: String, cause: Throwable = null)
    extends PenstockException(code, message, cause)

/** The call cannot succeed as it is. */
final class BadCall(code: String, message: String) extends PenstockException(code, message)

/** A newer instance of the query has taken over; this one must stop. */
final class Fenced(message: String) extends PenstockException("fenced", message)

/** Stored bytes are not what was written. */
final class Damaged(code: String, message: String) extends PenstockException(code, message)

/** A broken promise of our own code. */
final class Bug(code: String, message: String) extends PenstockException(code, message)
