import { openSync, writeFileSync } from 'node:fs'
import { setPriority } from 'node:os'
import { confineProcess } from '../../core/confinement'
import { enableJit } from '../../core/jit-policy'
import { compileSource } from './compiler'
import type { Command, Message } from './protocol'
import { getGrowthBytes } from './quickjs'
import { SandboxRun } from './sandbox-run'

// The sandbox process: it runs one lambda at a time, without the memory and environment of the server.

declare const self: Worker

const MAX_PROCESS_BYTES = 1 << 30 // of the process; the engine limits each lambda
const MAX_ENGINE_GROWTH_BYTES = 32 << 20 // after more growth the process is replaced
const MONITOR_INTERVAL_MS = 20

enableJit()
// The server has priority, and when memory is short the kernel kills this process first.
if (process.platform === 'linux')
  try {
    setPriority(5)
    writeFileSync('/proc/self/oom_score_adj', '1000')
  } catch {
    // Not allowed in some containers.
  }

// Loads the time zone, which is read from a file once.
new Date().toString()
// Stays open, because no file can be opened after the confinement.
const statusFile = process.platform === 'linux' ? openSync('/proc/self/status', 'r') : -1

// After everything needed was loaded, and before the start of the monitor thread, which inherits the confinement.
const missingConfinement = confineProcess()

/**
 * A lambda blocks the main thread, so another thread kills the process when the server is gone or memory exceeds
 * `maxBytes`.
 */
function monitorProcess(maxBytes: number, intervalMs: number, statusFd: number) {
  const { readSync } = process.getBuiltinModule('node:fs')
  const parent = process.ppid
  const text = Buffer.alloc(4_096)
  const readResidentBytes = () => {
    if (statusFd < 0) return process.memoryUsage.rss()
    const length = readSync(statusFd, text, 0, text.length, 0)
    return Number(/VmRSS:\s+(\d+) kB/.exec(text.toString('latin1', 0, length))?.[1]) * 1024
  }
  setInterval(() => {
    if (process.ppid !== parent || !(readResidentBytes() <= maxBytes)) process.kill(process.pid, 'SIGKILL')
  }, intervalMs)
  self.postMessage('watching')
}
const monitor = new Worker(
  URL.createObjectURL(new Blob([`(${monitorProcess})(${MAX_PROCESS_BYTES}, ${MONITOR_INTERVAL_MS}, ${statusFile})`])),
)
const monitorReady = new Promise((resolve) => {
  monitor.onmessage = resolve
})

const send = (message: Message) => void process.send?.(message)
const hasGrown = () => getGrowthBytes() > MAX_ENGINE_GROWTH_BYTES
let currentRun: SandboxRun | undefined

async function compileAndReply({ run, compile: code }: Extract<Command, { compile: string }>) {
  await monitorReady
  send({ run, end: compileSource(code), isWornOut: hasGrown() })
}

process.on('disconnect', () => process.exit())
process.on('message', (order: Command) => {
  const { run } = order
  if ('compile' in order) return void compileAndReply(order)
  if ('call' in order) return currentRun?.number === run ? currentRun.resolveCall(order) : undefined
  currentRun = new SandboxRun(order, send, (end, isIntact) => {
    currentRun = undefined
    send({ run, end, isWornOut: !isIntact || hasGrown() })
  })
  currentRun.start()
})
send({ ready: true, missing: missingConfinement })
