import type { FormField } from '../fields/field-form'
import { NewPasswordInput } from '../fields/password'
import { RoleInput } from './role-input'

const username: FormField = { key: 'username', title: 'Username', type: 'string', required: true }
const email: FormField = {
  key: 'email',
  title: 'E-mail address',
  type: 'email',
  description: 'You answer for it, so it counts as confirmed.',
}
const roles: FormField = {
  key: 'roles',
  title: 'Roles',
  type: 'string',
  multi: true,
  description: 'Choose some, or type a new one and press Enter.',
  Input: RoleInput,
}
const names: FormField[] = [
  { key: 'firstName', title: 'First name', type: 'string' },
  { key: 'lastName', title: 'Last name', type: 'string' },
]

/** What an admin may change of a user. */
export const userFields: FormField[] = [
  username,
  email,
  roles,
  ...names,
  { key: 'name', title: 'Display name', type: 'string' },
  { key: 'phone', title: 'Phone', type: 'string' },
  { key: 'birthDate', title: 'Birth date', type: 'date' },
  { key: 'profileImage', title: 'Profile image', type: 'url', description: 'The address of a picture.' },
  { key: 'metadata', title: 'Metadata', type: 'object', description: 'The user sees it. What you leave out stays.' },
  {
    key: 'internalMetadata',
    title: 'Internal metadata',
    type: 'object',
    description: 'Only admins see it. Fields that you leave out keep their values.',
  },
]

/** What a new user begins with. `isInvited` is not a property of the user. */
export const newUserFields: FormField[] = [
  username,
  email,
  { ...roles, default: ['user'] },
  ...names,
  {
    key: 'isInvited',
    title: 'Mail a link to choose a password',
    type: 'boolean',
    description: 'The email is sent to this address.',
    isHidden: ({ email: address, password }) => !address || !!password,
  },
  {
    key: 'password',
    title: 'Password',
    type: 'string',
    description: 'At least 8 characters. Without one, the user signs in by a mailed link or a provider.',
    Input: NewPasswordInput,
    isSecret: true,
    isHidden: ({ isInvited }) => isInvited === true,
  },
]
