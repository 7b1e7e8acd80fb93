import { openSync, writeFileSync } from 'node:fs'
import { setPriority } from 'node:os'
import { compileSource } from './compiler'
import { confineProcess } from './confinement'
import type { Command, Message } from './protocol'
import { getGrowthBytes } from './quickjs'
import { SandboxRun } from './sandbox-run'

// A process that runs lambdas, one after the other, and has neither our memory nor our environment.

declare const self: Worker

const MAX_PROCESS_BYTES = 1 << 30 // bytes of the process; a lambda's own are counted by the engine
const MAX_ENGINE_GROWTH_BYTES = 32 << 20 // bytes by which the engine may have grown
const MONITOR_INTERVAL_MS = 20 // ms

// Whoever waits for the server comes first; and when memory is short, this goes first.
if (process.platform === 'linux')
  try {
    setPriority(5)
    writeFileSync('/proc/self/oom_score_adj', '1000')
  } catch {}

// The zone in which days begin is found in a file, and then remembered.
new Date().toString()
// Held open, because nothing can be opened below.
const statusFile = process.platform === 'linux' ? openSync('/proc/self/status', 'r') : -1

// After all that is needed was loaded, and before the thread below, which inherits it.
const missingConfinement = confineProcess()

/** While a lambda is at it, this thread hears nothing; the other one ends both when the server is gone, or memory goes. */
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
const isWornOut = () => getGrowthBytes() > MAX_ENGINE_GROWTH_BYTES
let currentRun: SandboxRun | undefined

async function compileAndReply({ run, compile: code }: Extract<Command, { compile: string }>) {
  await monitorReady
  send({ run, end: compileSource(code), worn: isWornOut() })
}

process.on('disconnect', () => process.exit())
process.on('message', (order: Command) => {
  const { run } = order
  if ('compile' in order) return void compileAndReply(order)
  if ('call' in order) return currentRun?.number === run ? currentRun.resolveCall(order) : undefined
  currentRun = new SandboxRun(order, send, (end, sound) => {
    currentRun = undefined
    send({ run, end, worn: !sound || isWornOut() })
  })
  currentRun.start()
})
send({ ready: true, missing: missingConfinement })
