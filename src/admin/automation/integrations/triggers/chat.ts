import type { TriggerKind } from './trigger-kind'

export const chat: TriggerKind<'chat'> = {
  label: 'somebody chats with it',
  fields: [],
  describe: () => 'When somebody chats with it',
  hasCaller: true,
}
