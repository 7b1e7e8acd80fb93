import { afterAll, afterEach, beforeEach, setDefaultTimeout, spyOn, test } from 'bun:test'
import fc from 'fast-check'
import { config } from '../../../src/config'
import { moveClock } from '../../../src/core/clock'
import type { ProviderKind } from '../../../src/payments/providers/provider'
import { closed, open } from '../../plugins/kit'
import { check, patience } from '../../properties'
import { databaseUrl } from '../../storage/engines'
import { histories } from './acts'
import { simulator } from './simulator'
import { worlds } from './vendors'

setDefaultTimeout(patience)
open()
config.ATOLL_RATE_LIMITS = 'off'
const quiet = spyOn(console, 'error')
beforeEach(() => void quiet.mockImplementation(() => {}))
afterEach(() => moveClock(Date.now()))
afterAll(() => {
  closed()
  quiet.mockRestore()
  config.ATOLL_RATE_LIMITS = 'on'
})

const RUNS = databaseUrl ? 8 : 60

test.each(Object.keys(worlds) as ProviderKind[])(
  'whatever happens, and whenever the process dies, all is as %s has it in the end',
  async (kind) => {
    const world = await worlds[kind]()
    const { play } = await simulator(world)
    await check(RUNS, fc.asyncProperty(histories, play))
    await world.stop()
  },
)
