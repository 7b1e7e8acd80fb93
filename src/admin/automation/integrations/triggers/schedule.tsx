import { TimeZoneInput } from '../../../fields/time-zone-input'
import { CronInput } from './cron-input'
import { describeCron } from './cron-words'
import type { TriggerKind } from './trigger-kind'

export const schedule: TriggerKind<'schedule'> = {
  label: 'a time comes',
  fields: [
    {
      key: 'cron',
      title: 'Schedule',
      description: 'Minute, hour, day, month, day of the week.',
      type: 'string',
      required: true,
      default: '0 9 * * MON',
      Input: CronInput,
    },
    {
      key: 'timezone',
      title: 'Time zone',
      type: 'string',
      default: Intl.DateTimeFormat().resolvedOptions().timeZone,
      Input: TimeZoneInput,
    },
  ],
  describe({ cron, timezone }) {
    const zone = timezone && timezone !== 'UTC' ? ` (${timezone})` : ''
    return `${describeCron(cron) ?? `At ${cron}`}${zone}`
  },
  hasCaller: false,
}
