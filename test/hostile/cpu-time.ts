/** Milliseconds of processor time since `start`: what others would have waited for, however busy the machine is otherwise. */
export function cpuMsSince(start: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(start)
  return (user + system) / 1_000
}
