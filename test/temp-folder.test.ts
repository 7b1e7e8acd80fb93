// engine: sqlite
import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { waitUntil } from './wait-until'

const ENDINGS = {
  'ends by itself': 'process.exit(0)',
  'fails with an error': 'throw new Error("failed")',
  'is killed': 'process.kill(process.pid, "SIGKILL")',
}

test.each(Object.entries(ENDINGS))(
  'the folders of a process that %s are removed, though a program that it started still runs',
  async (_, ending) => {
    const source = `
      import { createTempFolder } from ${JSON.stringify(resolve(import.meta.dir, 'temp-folder.ts'))}
      const { pid } = Bun.spawn(['sleep', '60'], { stdio: ['ignore', 'ignore', 'ignore'] })
      await Bun.write(Bun.stdout, JSON.stringify({ pid, folder: createTempFolder() }))
      ${ending}`
    const child = Bun.spawn([process.execPath, '-e', source], { stdout: 'pipe', stderr: 'ignore' })
    const { pid, folder } = await child.stdout.json()
    try {
      await child.exited
      expect(await waitUntil(() => !existsSync(dirname(folder)))).toBeTrue()
    } finally {
      process.kill(pid)
    }
  },
)

test('the folders of a process are removed again when a program that it started creates one meanwhile', async () => {
  const source = `
    import { createTempFolder } from ${JSON.stringify(resolve(import.meta.dir, 'temp-folder.ts'))}
    const folder = createTempFolder()
    const recreate = 'while [ -e "$1" ]; do :; done; mkdir -p "$1/again"; echo created'
    Bun.spawn(['sh', '-c', recreate, 'sh', folder], { stdio: ['ignore', 'inherit', 'ignore'] })
    await Bun.write(Bun.stdout, folder + ' ')
    process.exit(0)`
  const child = Bun.spawn([process.execPath, '-e', source], { stdout: 'pipe', stderr: 'ignore' })
  const [folder = '', created] = (await child.stdout.text()).trim().split(' ')
  expect(created).toBe('created')
  expect(await waitUntil(() => !existsSync(dirname(folder)))).toBeTrue()
})
