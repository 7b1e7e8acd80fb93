import { t } from 'elysia'
import { defineSettings } from '../platform/settings/tenant-settings'
import { chosenRateLimits } from './shapes'

/** The limits that a tenant sets for its own callers. They only lower those of the operator. */
export const limitSettings = defineSettings('limits-configuration', t.Object(chosenRateLimits))
