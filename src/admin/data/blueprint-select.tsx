import { Select } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { blueprintsQuery } from '../api/queries'

type BlueprintSelectProps = {
  'aria-label': string
  label?: string
  description?: string
  error?: string
  value?: string
  onChange: (key: string | undefined) => void
}

/** Chooses one of the tenant's blueprints. */
export function BlueprintSelect({ value, onChange, ...rest }: BlueprintSelectProps) {
  const { data: blueprints = [] } = useQuery(blueprintsQuery)
  return (
    <Select
      {...rest}
      w={rest.label ? undefined : 140}
      searchable={blueprints.length > 8}
      placeholder="Blueprint"
      data={blueprints.map(({ key, name }) => ({ value: key, label: name }))}
      value={value ?? null}
      onChange={(key) => onChange(key ?? undefined)}
    />
  )
}
