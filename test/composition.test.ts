import { afterEach, describe, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { Glob } from 'bun'
import { app, areas } from '../src/app'
import { createExtensionPoints, type Provision } from '../src/core/extension'
import { compose } from '../src/jobs/area'
import { jobHandlers } from '../src/jobs/worker'

const readSource = (file: string) => Bun.file(`src/${file}`).text()
const sources = await Promise.all([...new Glob('**/*.ts').scanSync('src')].map(readSource))

describe('the composition of the server', () => {
  afterEach(() => compose(areas))

  test('every folder with an area is part of the server, under its own name', async () => {
    const files = [...new Glob('*/area.ts').scanSync('src')].filter((file) => file !== 'jobs/area.ts')
    const names = areas.map(({ name }) => name)
    expect(files.map((file) => file.split('/')[0]!).sort()).toEqual(names.filter((name) => name !== 'routing').sort())
  })

  test('every folder with routes has an area that mounts them', () => {
    const folders = new Set([...new Glob('**/routes{.ts,/*.ts}').scanSync('src')].map((file) => file.split('/')[0]!))
    for (const folder of folders) {
      const [area] = areas.filter(({ name }) => name === folder)
      expect(existsSync(`src/${folder}/area.ts`), folder).toBeTrue()
      if (folder !== 'operations') expect(area?.routes?.length, folder).toBeGreaterThan(0)
    }
  })

  test('every route of an area is a route of the server', () => {
    const served = new Set(app.routes.map(({ method, path }) => `${method} ${path}`))
    for (const { routes, fallbackRoutes } of areas)
      for (const { method, path } of [...(routes ?? []), ...(fallbackRoutes ? [fallbackRoutes] : [])].flatMap(
        ({ routes }) => routes,
      ))
        expect(served).toContain(`${method} /api${path}`)
  })

  test('every kind of jobs that some code enqueues has a handler', () => {
    const constants = new Map(
      sources.flatMap((source) =>
        [...source.matchAll(/const (\w+_JOB) = '([\w-]+)'/g)].map(([, name, kind]) => [name!, kind!] as const),
      ),
    )
    expect(constants.size).toBeGreaterThan(7)
    for (const [name, kind] of constants) expect(jobHandlers().has(kind), name).toBeTrue()
    const literals = sources.flatMap((source) =>
      [...source.matchAll(/(?:enqueue|enqueueAll)\([^;]*?kind: '([\w-]+)'/g)].map(([, kind]) => kind!),
    )
    expect(literals).toContain('mail')
    for (const kind of literals) expect(jobHandlers().has(kind), kind).toBeTrue()
  })

  test('compose refuses a kind of jobs with two handlers, and what was composed before stays', () => {
    const handler = { run: async () => ({ state: 'done' as const }) }
    expect(() => compose([...areas, { name: 'copy', jobs: { mail: handler } }])).toThrow(
      'Both "accounts" and "copy" add "mail" to "job handlers".',
    )
    expect(jobHandlers().get('mail')).not.toBe(handler)
  })

  test('compose refuses two areas with one name', () => {
    expect(() => compose([...areas, { name: 'payments' }])).toThrow('There are two areas with the name "payments".')
  })

  test('compose names what nobody provides when an area is left out', () => {
    expect(() => compose(areas.filter(({ name }) => name !== 'payments'))).toThrow(
      'Nothing provides "plan limits". Add the area that does so to src/app.ts.',
    )
  })

  test('no module of the server changes the wiring behind the back of compose', () => {
    for (const source of sources)
      expect(source).not.toMatch(/export (function|const) (register|set)\w+[^\n]*=> \{?\n?\s*\w+ = \w+\n/)
  })
})

describe('an extension point', () => {
  function createPoints() {
    const points = createExtensionPoints()
    const connectAll = (...provisions: Provision[]) =>
      points.connect(provisions.map((provision, n) => ({ name: `area ${n}`, provides: [provision] })))
    return { ...points, connectAll }
  }

  test('throws with its name when it is used before the areas are composed', () => {
    const { slot, connectAll } = createPoints()
    const late = slot<string>('a late slot')
    expect(late).toThrow('"a late slot" is used before the areas are composed. Import src/app.ts first.')
    connectAll(late.provide('now'))
    expect(late()).toBe('now')
  })

  test('collects contributions in the order of the areas', () => {
    const { extensions, registry, connectAll } = createPoints()
    const list = extensions<number>('numbers of this test')
    const map = registry<number>('numbers by name of this test')
    connectAll(list.provide([1, 2]), list.provide([3]), map.provide({ one: 1 }), map.provide({ two: 2 }))
    expect(list()).toEqual([1, 2, 3])
    expect([...map()]).toEqual([
      ['one', 1],
      ['two', 2],
    ])
  })

  test('refuses a slot that two areas provide', () => {
    const { slot, connectAll } = createPoints()
    const taken = slot<string>('a slot of this test')
    expect(() => connectAll(taken.provide('a'), taken.provide('b'))).toThrow(
      'Both "area 0" and "area 1" provide "a slot of this test". Only one area may.',
    )
  })
})
