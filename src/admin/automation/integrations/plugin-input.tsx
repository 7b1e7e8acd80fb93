import { Select } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { InputProps } from '../../fields/field-kind'
import { pluginsQuery } from '../plugins/plugin-queries'

/** Chooses a plugin by its name. Where there are none, there is nothing to choose. */
export function PluginInput({ field: _, value, onChange, ...rest }: InputProps) {
  const { data: plugins = [] } = useQuery(pluginsQuery)
  if (!plugins.length && !value) return null
  return (
    <Select
      {...rest}
      data={plugins.map(({ _id, name }) => ({ value: _id, label: name }))}
      value={typeof value === 'string' ? value : null}
      onChange={(chosen) => onChange(chosen ?? undefined)}
      placeholder="None"
      clearable
    />
  )
}
