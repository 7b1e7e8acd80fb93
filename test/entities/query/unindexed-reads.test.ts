import { expect, test } from 'bun:test'
import { availableParallelism } from 'node:os'
import { beginUnindexedRead } from '../../../src/entities/query/unindexed-reads'

const { signal } = new AbortController()
const most = Math.max(1, availableParallelism() - 1)

test('a list waits for another one without an index, and starts when it ends', async () => {
  const isMissing = async () => true
  const ends = await Promise.all(Array.from({ length: most }, () => beginUnindexedRead('one', isMissing, signal)))
  let hasBegun = false
  const next = beginUnindexedRead('one', isMissing, signal).then((end) => {
    hasBegun = true
    return end
  })
  expect(await beginUnindexedRead('of another index', isMissing, signal)).toBeFunction()
  expect(hasBegun).toBeFalse()
  ends[0]!()
  ;(await next)!()
})

test('a waiting list uses the index once it is ready', async () => {
  let isBuilt = false
  const isMissing = async () => !isBuilt
  for (let n = 0; n < most; n++) await beginUnindexedRead('two', isMissing, signal)
  const waiting = beginUnindexedRead('two', isMissing, signal)
  isBuilt = true
  expect(await waiting).toBeUndefined()
})

test('a list does not wait after its client has disconnected', async () => {
  const isMissing = async () => true
  for (let n = 0; n < most; n++) await beginUnindexedRead('three', isMissing, signal)
  expect(await beginUnindexedRead('three', isMissing, AbortSignal.abort())).toBeFunction()
})
