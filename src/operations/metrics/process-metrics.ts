import { version } from '../../../package.json'
import { config } from '../../config'
import { listFaultCounts } from '../../core/fault-counts'
import { countDroppedLines } from '../../core/stderr'
import { countDescriptors, readDescriptorLimit } from '../file-descriptors'
import { measureDisk } from '../installation-health'
import { defineCounter, defineGauge, defineHistogram } from './collected-metrics'
import { eventLoopLag } from './event-loop-lag'

const MICROSECONDS = 1e6

/** Defines the metrics of the process and its machine. */
export function defineProcessMetrics() {
  const engine = config.ATOLL_DATABASE_URL ? 'postgres' : 'sqlite'
  defineGauge(
    'atoll_build_info',
    'The version that runs.',
    ['version', 'bun', 'engine'],
    () => [[{ version, bun: Bun.version, engine }, 1]],
    'max',
  )
  defineGauge(
    'process_start_time_seconds',
    'When the process started, in seconds since 1970.',
    [],
    () => performance.timeOrigin / 1_000,
    'min',
  )
  defineCounter('process_cpu_seconds_total', 'The CPU time that the process took.', [], () => {
    const { user, system } = process.cpuUsage()
    return (user + system) / MICROSECONDS
  })
  defineGauge('process_resident_memory_bytes', 'The memory that the process takes.', [], () =>
    process.memoryUsage.rss(),
  )
  defineGauge('process_open_fds', 'The file descriptors that are open.', [], countDescriptors)
  defineGauge('process_max_fds', 'The file descriptors that may be open.', [], readDescriptorLimit)
  defineHistogram(
    'atoll_event_loop_lag_seconds',
    'How late the only thread for requests came to work that was due, measured five times a second.',
    [],
    () => [[{}, eventLoopLag]],
  )
  defineGauge(
    'atoll_disk_free_bytes',
    'The room on the disk of the data folder.',
    [],
    async () => {
      const disk = await measureDisk()
      return disk?.freeBytes
    },
    'min',
  )
  defineGauge(
    'atoll_disk_size_bytes',
    'The size of the disk of the data folder.',
    [],
    async () => {
      const disk = await measureDisk()
      return disk?.totalBytes
    },
    'max',
  )
  defineCounter(
    'atoll_log_lines_dropped_total',
    'The lines of the log that were dropped, because nothing reads them fast enough.',
    [],
    countDroppedLines,
  )
  defineCounter('atoll_faults_total', 'The lines of the log that tell a fault, or that it was mended.', ['fault'], () =>
    listFaultCounts().map(([fault, count]) => [{ fault }, count]),
  )
}
