import { afterAll, afterEach, beforeEach, describe, setDefaultTimeout, spyOn, test } from 'bun:test'
import fc from 'fast-check'
import { config } from '../../../src/config'
import { moveClock } from '../../../src/core/clock'
import { logOutput } from '../../../src/core/log'
import type { ProviderKind } from '../../../src/payments/providers/provider'
import { allowPrivateNetwork, denyPrivateNetwork } from '../../plugins/fixtures'
import { checkProperty, PROPERTY_TIMEOUT_MS } from '../../property-runner'
import { databaseUrl } from '../../storage/engines'
import { histories } from './actions'
import { knownHistories } from './known-histories'
import { worlds } from './provider-worlds'
import { createSimulator } from './simulator'

setDefaultTimeout(PROPERTY_TIMEOUT_MS)
allowPrivateNetwork()
config.ATOLL_RATE_LIMITS = 'off'
const logSpy = spyOn(logOutput, 'write')
beforeEach(() => void logSpy.mockImplementation(() => {}))
afterEach(() => moveClock())
afterAll(() => {
  denyPrivateNetwork()
  logSpy.mockRestore()
  config.ATOLL_RATE_LIMITS = 'on'
})

const RUNS = databaseUrl ? 6 : 30

describe.each(Object.keys(worlds) as ProviderKind[])('at %s', (kind) => {
  const started = worlds[kind]().then(async (world) => ({ world, ...(await createSimulator(world)) }))
  afterAll(async () => (await started).world.stop())

  test.each(knownHistories(kind))(
    'both sides agree, and what somebody paid for is not canceled: %s',
    async (_, history) => (await started).play(history),
  )

  test('random histories with faults and crashes end in the same state here and there', async () => {
    const { play } = await started
    await checkProperty(RUNS, fc.asyncProperty(histories, play))
  })
})
