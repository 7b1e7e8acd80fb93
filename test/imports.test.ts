// engine: sqlite
import { expect, test } from 'bun:test'
import { basename, dirname, join } from 'node:path'
import { Glob } from 'bun'

const files = new Set([...new Glob('**/*.{ts,tsx}').scanSync('src')].filter((file) => !file.endsWith('.d.ts')))
type Graph = Map<string, Set<string>>

/** What each file imports: values only, or types as well. */
async function readImports(withTypes: boolean): Promise<Graph> {
  const graph: Graph = new Map()
  for (const file of files) {
    const source = await Bun.file(`src/${file}`).text()
    const imported = new Set<string>()
    for (const [, typeOnly, names = '', spec = ''] of source.matchAll(
      /^(?:import|export) (type )?([\s\S]*?)from '(\.[^']+)'/gm,
    )) {
      const target = [`${spec}.ts`, `${spec}.tsx`, `${spec}/index.ts`]
        .map((path) => join(dirname(file), path))
        .find((p) => files.has(p))
      const named = names.trim().startsWith('{') ? names.replace(/[{}]/g, '').split(',') : ['value']
      const hasValue = !typeOnly && named.some((name) => name.trim() && !name.trim().startsWith('type '))
      if (target && (withTypes || hasValue)) imported.add(target)
    }
    graph.set(file, imported)
  }
  return graph
}

/** Groups of files that import each other (Tarjan's strongly connected components). */
function findCycles(graph: Graph): string[][] {
  const [order, low] = [new Map<string, number>(), new Map<string, number>()]
  const [stack, cycles]: [string[], string[][]] = [[], []]
  const visit = (file: string) => {
    order.set(file, order.size)
    low.set(file, order.get(file)!)
    stack.push(file)
    for (const next of graph.get(file)!) {
      if (!order.has(next)) visit(next)
      if (stack.includes(next)) low.set(file, Math.min(low.get(file)!, low.get(next)!))
    }
    if (low.get(file) !== order.get(file)) return
    const group = stack.splice(stack.indexOf(file))
    if (group.length > 1) cycles.push(group.sort())
  }
  for (const file of graph.keys()) if (!order.has(file)) visit(file)
  return cycles
}

test('findCycles finds files that import each other, directly or through others', () => {
  const graph: Graph = new Map(
    Object.entries({ a: ['b'], b: ['c'], c: ['a', 'd'], d: [], e: ['f'], f: ['e'] }).map(([file, imported]) => [
      file,
      new Set(imported),
    ]),
  )
  expect(findCycles(graph)).toEqual([
    ['a', 'b', 'c'],
    ['e', 'f'],
  ])
})

test('no files of the source import values from each other in a circle', async () => {
  expect(findCycles(await readImports(false))).toEqual([])
})

test('files that import types from each other are pairs at most', async () => {
  expect(findCycles(await readImports(true)).filter((group) => group.length > 2)).toEqual([])
})

/** Modules of the runtime that bring streams, sockets or TLS, some megabytes of memory. */
const LARGE_BUILTINS = [
  'child_process',
  'crypto',
  'dgram',
  'http',
  'http2',
  'https',
  'net',
  'stream',
  'tls',
  'tty',
  'zlib',
]
const STARTED = ['main.ts', 'commands/program.ts', 'commands/serve.ts', 'commands/server.ts', 'app.ts', 'gateway.ts']

test('the server starts without loading runtime modules that include streams, sockets or TLS', async () => {
  const graph = await readImports(false)
  const loaded = new Set(STARTED)
  for (const file of loaded) for (const next of graph.get(file)!) loaded.add(next)
  expect(loaded.size).toBeGreaterThan(500)
  for (const file of loaded) {
    const source = await Bun.file(`src/${file}`).text()
    const imported = [...source.matchAll(/^import (?!type )[^;]*?from '(?:node:)?([\w/]+)'/gm)].map(([, name]) => name!)
    expect(
      imported.filter((name) => LARGE_BUILTINS.includes(name.split('/')[0]!)),
      file,
    ).toEqual([])
  }
})

/** What the server and the page must not know differently. */
const SHARED_WITH_PAGE = [
  'blueprints/fields/number-cell.ts',
  'blueprints/sample-entity.ts',
  'core/byte-size.ts',
  'core/currencies.ts',
  'core/exact-numbers.ts',
  'core/list-text.ts',
  'blueprints/access-rules.ts',
]

test('the admin page imports of the server only how values are written, samples of them, and how access rules are evaluated', async () => {
  for (const [file, imported] of await readImports(true))
    if (file.startsWith('admin/'))
      for (const target of imported) if (!target.startsWith('admin/')) expect(target, file).toBeOneOf(SHARED_WITH_PAGE)
})

/** Names that say which part of any folder a file holds. */
const STANDARD_NAMES = ['index.ts', 'routes.ts', 'shapes.ts', 'tables.ts', 'events.ts', 'routes.tsx', 'section.ts']
/** Folders whose files are called by what they are about, or by the part of one of several implementations. */
const PARALLEL_FOLDERS = /\/(engines|providers|routes|kinds|targets|triggers|host-api)\//

test('no two files of an area have the same name', () => {
  const comparable = [...files].filter(
    (file) => !STANDARD_NAMES.includes(basename(file)) && !PARALLEL_FOLDERS.test(file),
  )
  // Each folder of the admin page is a group of screens of its own.
  const areaOf = (file: string) => (file.startsWith('admin/') ? dirname(file) : file.split('/')[0])
  const byName = Map.groupBy(comparable, (file) => `${areaOf(file)} ${basename(file)}`)
  for (const [name, group] of byName) expect(group, name).toHaveLength(1)
})
