import type { TriggerKind } from './trigger-kind'

export const webhook: TriggerKind<'webhook'> = {
  label: 'a request reaches its URL',
  fields: [],
  describe: () => 'When a request reaches its URL',
  hasCaller: true,
}
