import { afterAll, afterEach, beforeEach, setDefaultTimeout, spyOn, test } from 'bun:test'
import fc from 'fast-check'
import { config } from '../../../src/config'
import { moveClock } from '../../../src/core/clock'
import { logOutput } from '../../../src/core/log'
import type { ProviderKind } from '../../../src/payments/providers/provider'
import { allowPrivateNetwork, denyPrivateNetwork } from '../../plugins/fixtures'
import { checkProperty, PROPERTY_TIMEOUT_MS } from '../../property-runner'
import { databaseUrl } from '../../storage/engines'
import { histories } from './actions'
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

const RUNS = databaseUrl ? 8 : 60

test.each(Object.keys(worlds) as ProviderKind[])(
  'random histories with faults and crashes end in the same state here and at %s',
  async (kind) => {
    const world = await worlds[kind]()
    const { play } = await createSimulator(world)
    await checkProperty(RUNS, fc.asyncProperty(histories, play))
    await world.stop()
  },
)
