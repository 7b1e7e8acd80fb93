// engine: sqlite
import { expect, setDefaultTimeout, test } from 'bun:test'
import { resolve } from 'node:path'

setDefaultTimeout(60_000)

const file = JSON.stringify(resolve(import.meta.dir, '../../src/core/stderr.ts'))

/** Runs a program that has `writeLine`, `flush` and `waitUntilWritten`, and returns what it writes and its exit code. */
async function runWriter(
  code: string,
  read = (child: Bun.Subprocess<'ignore', 'ignore', 'pipe'>) => child.stderr.text(),
) {
  const script = `const { writeLine, flush, waitUntilWritten } = await import(${file}); ${code}`
  const child = Bun.spawn([process.execPath, '-e', script], { stdio: ['ignore', 'ignore', 'pipe'] })
  const text = await read(child)
  return { text, code: await child.exited }
}
const numbersIn = (text: string) =>
  text
    .split('\n')
    .slice(0, -1)
    .map((line) => Number(line.split(' ')[0]))
const range = (n: number) => Array.from({ length: n }, (_, i) => i)
const createLines = (n: number, width = 200) =>
  `for (let n = 0; n < ${n}; n++) writeLine(n + ' ' + 'ü'.repeat(${width}) + '\\n');`

test('writeLine writes all lines complete and in order, even when the process exits at once', async () => {
  const { text } = await runWriter(`${createLines(200)} process.exit(3)`)
  expect(numbersIn(text)).toEqual(range(200))
  expect(text).not.toContain('\ufffd')
})

test('waitUntilWritten resolves only after many megabytes are written completely', async () => {
  const { text } = await runWriter(`${createLines(20_000)} await waitUntilWritten(); process.exit()`)
  expect(numbersIn(text)).toEqual(range(20_000))
})

test('writeLine writes a line while the process keeps running', async () => {
  const { text } = await runWriter(`writeLine('0 a\\n'); setInterval(() => {}, 1000)`, async (child) => {
    const { value } = await child.stderr.getReader().read()
    child.kill()
    return new TextDecoder().decode(value)
  })
  expect(numbersIn(text)).toEqual([0])
})

test('a slow reader does not block the process and receives all lines', async () => {
  const { text } = await runWriter(
    `${createLines(2_000)} flush(); const began = performance.now(); await Bun.sleep(1);
     if (performance.now() - began > 20_000) process.exit(9); await waitUntilWritten(); process.exit(0)`,
    async (child) => {
      await Bun.sleep(300)
      return child.stderr.text()
    },
  )
  expect(numbersIn(text)).toEqual(range(2_000))
})

test('a reader that closes the pipe does not end the process', async () => {
  const { code } = await runWriter(
    `${createLines(2_000)} await waitUntilWritten(); writeLine('x\\n'); await waitUntilWritten(); process.exit(7)`,
    async (child) => {
      await child.stderr.cancel()
      return ''
    },
  )
  expect(code).toBe(7)
})
