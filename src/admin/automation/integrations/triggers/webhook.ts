import type { TriggerKind } from './trigger-kind'

export const webhook: TriggerKind<'webhook'> = {
  label: 'somebody calls its address',
  fields: [],
  describe: () => 'When somebody calls its address',
  hasCaller: true,
}
