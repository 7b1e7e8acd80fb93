// engine: sqlite
import { expect, test } from 'bun:test'
import { join } from 'node:path'

const RECORDS = /^(CHANGELOG\.md|docs\/adr\/|findings\/)/ // of what was true at their time

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

test('every document that names a version of Node names the one that the platform or the client needs', async () => {
  const minimumOf = async (name: string) => /^>=([\d.]+?)(\.0)?$/.exec(JSON.parse(await read(name)).engines.node)![1]!
  const known = [await minimumOf('package.json'), await minimumOf('client/package.json')]
  const files = ['*.md', '{docs,client,examples}/**/*.md'].flatMap((glob) => [...new Bun.Glob(glob).scanSync(root)])
  const others: string[] = []
  for (const file of files.filter((name) => !RECORDS.test(name) && !name.includes('node_modules'))) {
    const isOfClient = /client/.test(file)
    for (const [, version] of (await read(file)).matchAll(/\bNode(?:\.js)? v?(\d+(?:\.\d+)*)/g))
      if (version !== known[isOfClient ? 1 : 0]) others.push(`${file}: Node ${version}`)
  }
  expect(files.length).toBeGreaterThan(50)
  expect(others).toEqual([])
})
