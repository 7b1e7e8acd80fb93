// engine: sqlite
import { describe, expect, test } from 'bun:test'
import { ReadBatcher, ReadShares } from '../../src/storage/engines/postgres/read-batcher'

/** The reads of a tenant, each of whose transactions lasts until the test ends it. */
function readsOf(tenant: string, shares: ReadShares) {
  const running: { reads: string[]; end(): void }[] = []
  const batcher = new ReadBatcher(tenant, shares, async (reads) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    running.push({ reads: reads.map(({ sql }) => sql), end: resolve })
    await promise
    return reads.map(({ sql }) => ({ status: 'fulfilled', value: [[sql]] }))
  })
  return {
    read: (...names: string[]) => Promise.all(names.map((name) => batcher.query(name))),
    /** Has the batcher know that its reads are slow. */
    async readSlowly() {
      const slow = batcher.query('slow')
      await Bun.sleep(SLOW_MS)
      running.shift()?.end()
      await slow
      await Bun.sleep(ACTIVE_MS)
    },
    running: () => running.map(({ reads }) => reads),
    async endFirst() {
      running.shift()?.end()
      await turn()
    },
  }
}

const CONNECTIONS = 10
const SLOW_MS = 30
const ACTIVE_MS = 15 // more than how long a tenant counts as reading
/** Reads begin after the turn of the event loop in which they come. */
const turn = () => new Promise(setImmediate).then(() => new Promise(setImmediate))

describe('the transactions in which tenants read', () => {
  test('quick reads of one turn share a transaction, and slow ones are divided among four', async () => {
    const acme = readsOf('acme', new ReadShares(CONNECTIONS))
    acme.read('a', 'b', 'c', 'd', 'e', 'f')
    await turn()
    expect(acme.running()).toEqual([['a', 'b', 'c', 'd', 'e', 'f']])
    await acme.endFirst()
    await acme.readSlowly()
    acme.read('a', 'b', 'c', 'd', 'e', 'f')
    await turn()
    expect(acme.running()).toEqual([['a', 'b'], ['c'], ['d'], ['e']])
  })

  test('quick reads of later turns share the next transaction while two are running', async () => {
    const acme = readsOf('acme', new ReadShares(CONNECTIONS))
    for (const name of ['a', 'b', 'c', 'd']) {
      acme.read(name)
      await turn()
    }
    expect(acme.running()).toEqual([['a'], ['b']])
    await acme.endFirst()
    expect(acme.running()).toEqual([['b'], ['c', 'd']])
  })

  test('slow reads that arrive while four transactions of the only active tenant run are divided among the next ones', async () => {
    const acme = readsOf('acme', new ReadShares(CONNECTIONS))
    await acme.readSlowly()
    const answers = acme.read('a', 'b', 'c', 'd')
    await turn()
    const later = acme.read('e', 'f', 'g', 'h', 'i')
    await turn()
    expect(acme.running()).toEqual([['a'], ['b'], ['c'], ['d']])
    await acme.endFirst()
    expect(acme.running()).toEqual([['b'], ['c'], ['d'], ['e', 'f']])
    for (let batches = 0; batches < 8; batches++) await acme.endFirst()
    expect(await answers).toEqual([[['a']], [['b']], [['c']], [['d']]])
    expect(await later).toEqual([[['e']], [['f']], [['g']], [['h']], [['i']]])
  })

  test('a tenant reads in one transaction at a time while another one waits for a read', async () => {
    const shares = new ReadShares(CONNECTIONS)
    const [acme, other] = [readsOf('acme', shares), readsOf('other', shares)]
    await acme.readSlowly()
    other.read('x')
    await Bun.sleep(20)
    acme.read('a')
    await turn()
    acme.read('b', 'c')
    await turn()
    expect(acme.running()).toEqual([['a']])
    await acme.endFirst()
    expect(acme.running()).toEqual([['b']])
    expect(other.running()).toEqual([['x']])
  })

  test('a tenant that reads in four transactions ends all but one of them when another one begins to read', async () => {
    const shares = new ReadShares(CONNECTIONS)
    const [acme, other] = [readsOf('acme', shares), readsOf('other', shares)]
    await acme.readSlowly()
    acme.read('a', 'b', 'c', 'd')
    await turn()
    acme.read('e')
    other.read('x')
    await turn()
    await acme.endFirst()
    expect(acme.running()).toEqual([['b'], ['c'], ['d']])
    for (let batches = 0; batches < 3; batches++) await acme.endFirst()
    expect(acme.running()).toEqual([['e']])
  })

  test('a tenant reads in four transactions again once the last read of the other one is over', async () => {
    const shares = new ReadShares(CONNECTIONS)
    const [acme, other] = [readsOf('acme', shares), readsOf('other', shares)]
    await acme.readSlowly()
    other.read('x')
    await turn()
    await other.endFirst()
    await Bun.sleep(20)
    acme.read('a', 'b', 'c', 'd')
    await turn()
    expect(acme.running()).toEqual([['a'], ['b'], ['c'], ['d']])
  })

  test('a quick read beside those of another tenant does not wait until a long one is over', async () => {
    const shares = new ReadShares(CONNECTIONS)
    const [acme, other] = [readsOf('acme', shares), readsOf('other', shares)]
    other.read('x')
    acme.read('long')
    await turn()
    acme.read('quick')
    await turn()
    expect(acme.running()).toEqual([['long']])
    while (acme.running().length < 2) await Bun.sleep(5)
    expect(acme.running()).toEqual([['long'], ['quick']])
  })

  test('a tenant beside others reads in a transaction for each ten connections, four at most', async () => {
    for (const [connections, count] of [
      [2, 1],
      [10, 1],
      [20, 2],
      [200, 4],
    ] as const) {
      const shares = new ReadShares(connections)
      const [acme, other] = [readsOf('acme', shares), readsOf('other', shares)]
      await acme.readSlowly()
      other.read('x')
      acme.read('a', 'b', 'c', 'd', 'e')
      await turn()
      expect(acme.running(), `${connections} connections`).toHaveLength(count)
    }
  })
})
