import { afterAll, expect, test } from 'bun:test'
import { moveClock, now } from '../../../src/core/clock'
import { fullAccessRules, withoutRateLimits } from '../../test-tenant'
import { createThingsFixture, type Entity, importThings, nextPagePath } from '../fixtures'

const limits = withoutRateLimits()
afterAll(() => {
  moveClock()
  limits[Symbol.dispose]()
})

/** Returns numbers that look random, the same ones in every run. */
function createRandom(seed: number) {
  let state = seed
  return (below: number) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return (state >>> 8) % below
  }
}

/** The older one comes first; of the same moment, the one whose identifier does. */
const compareAges = (one: Entity, other: Entity) =>
  `${one.created} ${one.identifier}` < `${other.created} ${other.identifier}` ? -1 : 1

const fields = [
  { key: 'name', type: 'string' },
  { key: 'size', type: 'integer' },
  { key: 'tags', type: 'string', multi: true },
]

test.each([1, 2, 3])(
  'entities and lists as of any time equal a model that keeps all states (seed %p)',
  async (seed) => {
    const own = await createThingsFixture(fields, fullAccessRules('tenant', 'user'), { history: true })
    const { as, path } = own
    const [user, random] = [as('user'), createRandom(seed)]
    const present = new Map<string, Entity>()
    const start = now() + 1_000
    const rows = Array.from({ length: 30 }, (_, n) => ({ identifier: `e${n % 8}`, name: `i${n}` })).slice(0, random(30))
    if (seed % 2) await importThings({ ...own, path }, [...new Map(rows.map((row) => [row.identifier, row])).values()])
    for (const entity of (await user.get(path)).body) present.set(entity.identifier, entity)
    const states: [time: number, entities: Map<string, Entity>][] = [[start, new Map(present)]]
    for (let step = 0; step < 60; step++) {
      moveClock(start + (step + 1) * 1_000)
      const identifier = `e${random(8)}`
      const existing = present.get(identifier)
      const body = {
        name: random(4) ? `n${random(3)}` : null,
        size: random(4) ? random(5) : null,
        tags: random(2) ? [`t${random(3)}`] : null,
      }
      if (existing && !random(4)) {
        await user.delete(`${path}/${identifier}`)
        present.delete(identifier)
      } else if (existing && !random(6)) {
        // The latest state is restored after another change in the same step, so that both are one moment.
        const { body: versions } = await user.get(`${path}/${identifier}/history?$limit=1`)
        await user.put(`${path}/${identifier}`, { name: 'for a moment' })
        const restored = await user.post(`${path}/${identifier}/history/${versions[0].version}/restore`)
        expect(restored.body.metadata).toEqual(existing.metadata)
        present.set(identifier, restored.body)
      } else {
        const answer = existing
          ? await user.put(`${path}/${identifier}`, body)
          : await user.post(path, { identifier, ...body })
        expect(answer.body.message).toBeUndefined()
        present.set(identifier, answer.body)
      }
      states.push([now(), new Map(present)])
    }
    for (const [time, entities] of states) {
      const asOf = `$asOf=${new Date(time).toISOString()}`
      const all = [...entities.values()]
      const bySize = all
        .filter(({ size }) => size !== undefined && (size as number) >= 2)
        .sort((one, other) => (one.size as number) - (other.size as number) || compareAges(one, other))
      const strip = (list: Entity[]) => list.map(({ updated: _, ...entity }) => entity)
      const sized = await user.get(`${path}?${asOf}&size[$gte]=2&$sort=size`)
      expect(strip(sized.body)).toEqual(strip(bySize))
      const paged: Entity[] = []
      for (let next: string | undefined = `${path}?${asOf}&$limit=3`; next; ) {
        const { body, headers } = await user.get(next)
        paged.push(...body)
        next = nextPagePath(headers)
      }
      expect(strip(paged)).toEqual(strip(all.toSorted((one, other) => compareAges(other, one))))
      for (let n = 0; n < 8; n++) {
        const { status, body } = await user.get(`${path}/e${n}?${asOf}`)
        const wanted = entities.get(`e${n}`)
        expect(status).toBe(wanted ? 200 : 404)
        if (wanted) expect(strip([body])).toEqual(strip([wanted]))
      }
    }
  },
  120_000,
)
