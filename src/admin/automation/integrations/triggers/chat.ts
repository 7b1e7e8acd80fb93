import type { TriggerKind } from './trigger-kind'

export const chat: TriggerKind<'chat'> = {
  label: 'someone chats with it',
  fields: [],
  describe: () => 'When someone chats with it',
  hasCaller: true,
}
