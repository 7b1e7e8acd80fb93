// engine: sqlite
import { expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { getPriority, setPriority } from 'node:os'
import { lowerPriority } from '../../src/core/process-priority'

/** Starts a process that has several threads. */
async function startProcess() {
  const code = "await Bun.zstdCompress(new Uint8Array(1e6)); console.log('ready'); await Bun.sleep(60_000)"
  const child = Bun.spawn([process.execPath, '-e', code], { stdout: 'pipe' })
  await child.stdout.getReader().read()
  return child
}

const listThreads = (pid: number) =>
  process.platform === 'linux' ? readdirSync(`/proc/${pid}/task`).map(Number) : [pid]

test('lowerPriority lets all threads of a process give way, and never raises the priority of one', async () => {
  const child = await startProcess()
  try {
    const threads = listThreads(child.pid)
    const listPriorities = () => {
      const left = listThreads(child.pid).filter((thread) => threads.includes(thread))
      return [...new Set(left.map((thread) => getPriority(thread)))]
    }
    lowerPriority(child.pid)
    expect(listPriorities()).toEqual([10])
    for (const thread of listThreads(child.pid)) setPriority(thread, 15)
    lowerPriority(child.pid)
    expect(listPriorities()).toEqual([15])
  } finally {
    child.kill()
  }
})

test('lowerPriority ignores a process that has ended', async () => {
  const child = await startProcess()
  child.kill()
  await child.exited
  expect(() => lowerPriority(child.pid)).not.toThrow()
})

test.skipIf(process.platform !== 'linux')('lowerThreadPriority never raises the priority of a thread', async () => {
  const module = `${import.meta.dir}/../../src/core/process-priority.ts`
  const code = `
    import { readlinkSync } from 'node:fs'
    import { getPriority } from 'node:os'
    import { lowerThreadPriority } from ${JSON.stringify(module)}
    lowerThreadPriority()
    console.log(getPriority(Number(readlinkSync('/proc/thread-self').split('/').at(-1))))`
  const child = Bun.spawn(['nice', '-n', '15', process.execPath, '-e', code], { stdout: 'pipe' })
  expect((await child.stdout.text()).trim()).toBe('19')
})
