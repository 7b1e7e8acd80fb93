import { Select } from '@mantine/core'

type AddressFilterProps = {
  label: string
  options: readonly { value: string; label: string }[]
  value?: string
  onChange(value: string | undefined): void
}

/** One filter of a list as a choice; the address keeps it. */
export const AddressFilter = ({ label, options, value, onChange }: AddressFilterProps) => (
  <Select
    size="xs"
    w={170}
    aria-label={label}
    placeholder={label}
    data={[...options]}
    value={value ?? null}
    onChange={(chosen) => onChange(chosen ?? undefined)}
    clearable
    clearButtonProps={{ 'aria-label': `Remove the filter ${label}` }}
    searchable={options.length > 8}
  />
)
