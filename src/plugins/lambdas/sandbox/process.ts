import { openSync, writeFileSync } from 'node:fs'
import { setPriority } from 'node:os'
import { compiled } from './compiling'
import { confineProcess } from './confinement'
import { grown } from './engine'
import type { Order, Word } from './protocol'
import { Run } from './run'

// A process that runs lambdas, one after the other, and has neither our memory nor our environment.

declare const self: Worker

const MEMORY = 1 << 30 // bytes of the process; a lambda's own are counted by the engine
const GROWN = 32 << 20 // bytes by which the engine may have grown
const WATCH = 20 // ms

// Whoever waits for the server comes first; and when memory is short, this goes first.
if (process.platform === 'linux')
  try {
    setPriority(5)
    writeFileSync('/proc/self/oom_score_adj', '1000')
  } catch {}

// The zone in which days begin is found in a file, and then remembered.
new Date().toString()
// Held open, because nothing can be opened below.
const status = process.platform === 'linux' ? openSync('/proc/self/status', 'r') : -1

// After all that is needed was loaded, and before the thread below, which inherits it.
const missing = confineProcess()

/** While a lambda is at it, this thread hears nothing; the other one ends both when the server is gone, or memory goes. */
function watching(most: number, every: number, status: number) {
  const { readSync } = process.getBuiltinModule('node:fs')
  const parent = process.ppid
  const text = Buffer.alloc(4_096)
  const resident = () => {
    if (status < 0) return process.memoryUsage.rss()
    const length = readSync(status, text, 0, text.length, 0)
    return Number(/VmRSS:\s+(\d+) kB/.exec(text.toString('latin1', 0, length))?.[1]) * 1024
  }
  setInterval(() => {
    if (process.ppid !== parent || !(resident() <= most)) process.kill(process.pid, 'SIGKILL')
  }, every)
  self.postMessage('watching')
}
const watch = new Worker(URL.createObjectURL(new Blob([`(${watching})(${MEMORY}, ${WATCH}, ${status})`])))
const watched = new Promise((resolve) => {
  watch.onmessage = resolve
})

const say = (word: Word) => void process.send?.(word)
const worn = () => grown() > GROWN
let current: Run | undefined

async function compile({ run, compile: code }: Extract<Order, { compile: string }>) {
  await watched
  say({ run, end: compiled(code), worn: worn() })
}

process.on('disconnect', () => process.exit())
process.on('message', (order: Order) => {
  const { run } = order
  if ('compile' in order) return void compile(order)
  if ('call' in order) return current?.number === run ? current.answered(order) : undefined
  current = new Run(order, say, (end, sound) => {
    current = undefined
    say({ run, end, worn: !sound || worn() })
  })
  current.begin()
})
say({ ready: true, missing })
