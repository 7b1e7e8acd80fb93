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
    running: () => running.map(({ reads }) => reads),
    async endFirst() {
      running.shift()?.end()
      for (let turns = 0; turns < 10; turns++) await Promise.resolve()
    },
  }
}

const CONNECTIONS = 10

describe('the transactions in which tenants read', () => {
  test('a tenant alone reads in four transactions at a time, and reads that wait share the next one', async () => {
    const acme = readsOf('acme', new ReadShares(CONNECTIONS))
    const answers = acme.read('a', 'b', 'c', 'd', 'e', 'f')
    expect(acme.running()).toEqual([['a'], ['b'], ['c'], ['d']])
    await acme.endFirst()
    expect(acme.running()).toEqual([['b'], ['c'], ['d'], ['e', 'f']])
    for (let batches = 0; batches < 4; batches++) await acme.endFirst()
    expect(await answers).toEqual([[['a']], [['b']], [['c']], [['d']], [['e']], [['f']]])
  })

  test('a tenant reads in one transaction at a time while another one waits for a read', async () => {
    const shares = new ReadShares(CONNECTIONS)
    const [acme, other] = [readsOf('acme', shares), readsOf('other', shares)]
    other.read('x')
    await Bun.sleep(20)
    acme.read('a', 'b', 'c')
    expect(acme.running()).toEqual([['a']])
    await acme.endFirst()
    expect(acme.running()).toEqual([['b', 'c']])
    expect(other.running()).toEqual([['x']])
  })

  test('a tenant that reads in four transactions ends all but one of them when another one begins to read', async () => {
    const shares = new ReadShares(CONNECTIONS)
    const [acme, other] = [readsOf('acme', shares), readsOf('other', shares)]
    acme.read('a', 'b', 'c', 'd', 'e')
    other.read('x')
    await acme.endFirst()
    expect(acme.running()).toEqual([['b'], ['c'], ['d']])
    for (let batches = 0; batches < 3; batches++) await acme.endFirst()
    expect(acme.running()).toEqual([['e']])
  })

  test('a tenant reads in four transactions again once the last read of the other one is over', async () => {
    const shares = new ReadShares(CONNECTIONS)
    const [acme, other] = [readsOf('acme', shares), readsOf('other', shares)]
    other.read('x')
    await other.endFirst()
    await Bun.sleep(20)
    acme.read('a', 'b', 'c', 'd')
    expect(acme.running()).toEqual([['a'], ['b'], ['c'], ['d']])
  })

  test('a quick read beside those of another tenant does not wait until a long one is over', async () => {
    const shares = new ReadShares(CONNECTIONS)
    const [acme, other] = [readsOf('acme', shares), readsOf('other', shares)]
    other.read('x')
    acme.read('long')
    acme.read('quick')
    expect(acme.running()).toEqual([['long']])
    while (acme.running().length < 2) await Bun.sleep(5)
    expect(acme.running()).toEqual([['long'], ['quick']])
  })

  test('a tenant beside others reads in a transaction for each ten connections, four at most', () => {
    for (const [connections, count] of [
      [2, 1],
      [10, 1],
      [20, 2],
      [200, 4],
    ] as const) {
      const shares = new ReadShares(connections)
      const [acme, other] = [readsOf('acme', shares), readsOf('other', shares)]
      other.read('x')
      acme.read('a', 'b', 'c', 'd', 'e')
      expect(acme.running(), `${connections} connections`).toHaveLength(count)
    }
  })
})
