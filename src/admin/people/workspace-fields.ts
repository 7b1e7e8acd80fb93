import type { FormField } from '../fields/field-form'

/** What may be changed of a workspace. */
export const workspaceFields: FormField[] = [
  { key: 'name', title: 'Name', type: 'string', required: true },
  {
    key: 'labels',
    title: 'Labels',
    type: 'string',
    multi: true,
    description: 'Rules and limits of blueprints can ask for them. Type one and press Enter.',
  },
  { key: 'logo', title: 'Logo', type: 'url', description: 'The address of a picture.' },
]
