/** Milliseconds of processor time since `start`, which other requests would have waited for, regardless of the load of the machine. */
export function cpuMsSince(start: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(start)
  return (user + system) / 1_000
}
