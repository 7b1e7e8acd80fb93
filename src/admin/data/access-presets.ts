import type { Rule } from '../api/schema'

/** A common set of rules, as a person chooses it for a new blueprint. */
export type AccessPreset = { value: string; label: string; description: string; rules: Rule[] }

const ownRules: Rule[] = (['create', 'update', 'delete'] as const).map((operation) => ({ operation, roleBased: ['*'] }))
const readAll: Rule = { operation: 'read', scope: 'tenant', roleBased: ['*'] }

/** What a new blueprint offers; the rules can be changed later. */
export const accessPresets: AccessPreset[] = [
  {
    value: 'admins',
    label: 'Only administrators',
    description: 'Others can neither read nor change anything.',
    rules: [],
  },
  {
    value: 'own',
    label: 'Users see only their own',
    description: 'Signed-in users read and change what they created.',
    rules: [...ownRules, { operation: 'read', roleBased: ['*'] }],
  },
  {
    value: 'shared',
    label: 'Signed-in users read all',
    description: 'They change what they created.',
    rules: [...ownRules, readAll],
  },
  {
    value: 'public',
    label: 'Everybody reads all',
    description: 'Everyone, including guests, can read. Signed-in users can change their own entities.',
    rules: [...ownRules, { ...readAll, guest: true }],
  },
]
