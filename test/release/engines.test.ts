import { expect, test } from 'bun:test'
import { join } from 'node:path'

const root = join(import.meta.dir, '../..')
const read = (name: string) => Bun.file(join(root, name)).text()

test('the Node that package.json asks for satisfies every dependency, and documents name it', async () => {
  const { engines } = JSON.parse(await read('package.json')) as { engines: { node: string } }
  const minimum = /^>=(\d+\.\d+\.\d+)$/.exec(engines.node)![1]!
  const { packages } = JSON.parse(await read('package-lock.json')) as {
    packages: Record<string, { engines?: { node?: string } }>
  }
  const refused = Object.entries(packages).flatMap(([name, { engines: { node = '*' } = {} }]) =>
    Bun.semver.satisfies(minimum, node) ? [] : `${name} needs ${node}`,
  )
  expect(refused).toEqual([])
  const short = minimum.replace(/\.0$/, '')
  for (const name of ['README.md', 'CONTRIBUTING.md']) expect(await read(name)).toContain(`Node ${short} or later`)
})
