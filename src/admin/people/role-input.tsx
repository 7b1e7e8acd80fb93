import { TagsInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { InputProps } from '../fields/field-kind'
import { rolesQuery } from './user-queries'

/** An input for roles: those in use are suggested, and any other name makes a new one. */
export function RoleInput({ field: _, value, onChange, ...rest }: InputProps) {
  const { data: roles = [] } = useQuery(rolesQuery)
  return <TagsInput {...rest} data={roles} value={Array.isArray(value) ? value.map(String) : []} onChange={onChange} />
}
