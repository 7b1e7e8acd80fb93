import { expect, test } from 'bun:test'
import { TurnArbiter, type TurnMessage, WriteTurns } from '../../src/storage/engines/sqlite/write-turns'

const FILE = 'acme/data.db'

/** Connects processes with an arbiter by messages that take a turn of the event loop. `sent` has what they sent. */
function connectProcesses(count: number, { timeout = 2_000, holdFor = 0, takeoverAfter = 60_000 } = {}) {
  const sent: [number, TurnMessage][] = []
  const ended = new Set<number>()
  const unread = new Map<number, TurnMessage[]>()
  const later = (deliver: () => void) => void setImmediate(deliver)
  const arbiter = new TurnArbiter(
    (to, message) =>
      later(() => {
        if (unread.has(to)) unread.get(to)!.push(message)
        else if (!ended.has(to)) processes[to]!.receive(message)
      }),
    takeoverAfter,
  )
  const processes = Array.from({ length: count }, (_, number) => {
    const send = (message: TurnMessage) => {
      sent.push([number, message])
      later(() => {
        if (!ended.has(number)) arbiter.receive(number, message)
      })
    }
    return new WriteTurns(send, timeout, holdFor)
  })
  const end = (number: number) => {
    ended.add(number)
    arbiter.remove(number)
  }
  /** Lets a process read no messages until the returned function is called. */
  const suspend = (number: number) => {
    unread.set(number, [])
    return () => {
      const messages = unread.get(number)!
      unread.delete(number)
      for (const message of messages) processes[number]!.receive(message)
    }
  }
  return { processes, sent, end, suspend }
}

test('processes that write all the time have a turn each, never two at once', async () => {
  const { processes } = connectProcesses(3)
  const counts = [0, 0, 0]
  let writers = 0
  let most = 0
  const write = async (number: number) => {
    while (counts[number]! < 50) {
      await processes[number]!.acquire(FILE)
      most = Math.max(most, ++writers)
      await Bun.sleep(0)
      writers--
      counts[number]!++
      processes[number]!.release(FILE)
      // None is far ahead of the others.
      expect(Math.max(...counts) - Math.min(...counts)).toBeLessThan(10)
    }
  }
  await Promise.all([0, 1, 2].map(write))
  expect(most).toBe(1)
})

test('a single writer asks once, and gives its turn back when another process asks or the file is closed', async () => {
  const { processes, sent } = connectProcesses(2)
  const [one, two] = processes as [WriteTurns, WriteTurns]
  for (let writes = 0; writes < 5; writes++) {
    await one.acquire(FILE)
    one.release(FILE)
  }
  expect(sent).toEqual([[0, { act: 'request', file: FILE }]])
  await two.acquire(FILE)
  expect(sent.at(-1)).toEqual([0, { act: 'release', file: FILE }])
  two.release(FILE)
  two.close(FILE)
  await one.acquire(FILE)
  expect(sent.map(([number, { act }]) => `${number} ${act}`)).toEqual([
    ...['0 request', '1 request', '0 release', '1 release', '0 request'],
  ])
})

test('a process that writes all the time keeps its turn for a while, and an idle one gives it back at once', async () => {
  const { processes, sent } = connectProcesses(2, { holdFor: 60_000 })
  const [one, two] = processes as [WriteTurns, WriteTurns]
  await one.acquire(FILE)
  let hasSecond = false
  const second = two.acquire(FILE)!.then(() => {
    hasSecond = true
  })
  for (let writes = 0; writes < 20; writes++) {
    await Bun.sleep(0)
    const next = one.acquire(FILE)
    one.release(FILE)
    await next
  }
  expect(hasSecond).toBe(false)
  one.release(FILE)
  await second
  expect(sent.filter(([, { act }]) => act === 'release')).toHaveLength(1)
})

test('two writers of one process wait for each other, and for nobody at another file', async () => {
  const { processes } = connectProcesses(1)
  const [turns] = processes as [WriteTurns]
  await turns.acquire(FILE)
  let hasSecond = false
  const second = turns.acquire(FILE)!.then(() => {
    hasSecond = true
  })
  await turns.acquire('other/data.db')
  expect(hasSecond).toBe(false)
  turns.release(FILE)
  await second
  expect(hasSecond).toBe(true)
})

test('the turn of a process that has ended goes to the next one, and what it waited for is forgotten', async () => {
  const { processes, end } = connectProcesses(3)
  const [one, two, three] = processes as [WriteTurns, WriteTurns, WriteTurns]
  await one.acquire(FILE)
  two.acquire(FILE)!.catch(() => {}) // it never gets it
  await Bun.sleep(5)
  const third = three.acquire(FILE)
  await Bun.sleep(5)
  end(1)
  end(0)
  await third
})

test('a writer that waits for longer than the timeout gets BUSY, and a later one gets the turn', async () => {
  const { processes } = connectProcesses(2, { timeout: 50 })
  const [one, two] = processes as [WriteTurns, WriteTurns]
  await one.acquire(FILE)
  expect(await two.acquire(FILE)!.catch(({ code }) => code)).toBe('BUSY')
  one.release(FILE)
  await Bun.sleep(5)
  await two.acquire(FILE)
  two.release(FILE)
  await one.acquire(FILE)
})

test('the turn of a process that does not answer goes to the next one, and it has to ask again', async () => {
  const { processes, sent, suspend } = connectProcesses(3, { takeoverAfter: 20 })
  const [one, two, three] = processes as [WriteTurns, WriteTurns, WriteTurns]
  await one.acquire(FILE)
  one.release(FILE)
  const resume = suspend(0)
  await two.acquire(FILE)
  two.release(FILE)
  await three.acquire(FILE)
  resume()
  const first = one.acquire(FILE)
  three.release(FILE)
  await first
  expect(sent.map(([number, { act }]) => `${number} ${act}`)).toEqual([
    ...['0 request', '1 request', '2 request', '1 release', '0 release', '0 request', '2 release'],
  ])
})
