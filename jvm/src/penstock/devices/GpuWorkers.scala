// Scala because: rules of Spark's planner and the questions of the stream thread read it.
package penstock.devices

import penstock.settings.Keys

/** How many workers may be at one GPU at once. */
object GpuWorkers {

  /**
   * The bound as it is configured. Of a query that insists on the GPU, a task that finds no free slot
   * fails, so that there as many may be at it as tasks run at once on one machine.
   */
  def bound(devices: String, configured: Long, tasksOfMachine: => Int): Long =
    if (devices == Keys.GpuDevices) math.max(configured, tasksOfMachine.toLong) else configured
}
