import { TagsInput, type TagsInputProps } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { InputProps } from '../fields/field-kind'
import { rolesQuery } from './user-queries'

/** An input for roles: known ones are suggested, and any other name makes a new one. */
export function RoleTagsInput({ onChange, ...props }: TagsInputProps) {
  const [isOpen, setIsOpen] = useState(false)
  const change = (roles: string[]) => {
    // The suggestions would cover the button beneath.
    setIsOpen(false)
    onChange?.(roles)
  }
  return (
    <TagsInput
      {...props}
      onChange={change}
      dropdownOpened={isOpen}
      onDropdownOpen={() => setIsOpen(true)}
      onDropdownClose={() => setIsOpen(false)}
    />
  )
}

/** An input of a form for the roles of a user. */
export function RoleInput({ field: _, value, onChange, ...rest }: InputProps) {
  const { data: roles = [] } = useQuery(rolesQuery)
  const chosen = Array.isArray(value) ? value.map(String) : []
  return <RoleTagsInput {...rest} data={roles} value={chosen} onChange={onChange} />
}
