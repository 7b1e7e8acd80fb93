import { Select, type SelectProps } from '@mantine/core'
import { queryOptions, useQuery } from '@tanstack/react-query'
import { api, fetchData } from '../api/client'

const MAX_OPTIONS = 50

const timeZonesQuery = queryOptions({
  queryKey: ['time-zones'],
  queryFn: () => fetchData(api.GET('/api/time-zones')),
  staleTime: Number.POSITIVE_INFINITY,
})

type TimeZoneSelectProps = Omit<SelectProps, 'data' | 'value' | 'onChange'> & {
  value: string
  onChange: (zone: string | null) => void
}

/** Chooses a time zone that the server knows. Until it has answered, there is only the chosen one. */
export function TimeZoneSelect({ value, onChange, ...rest }: TimeZoneSelectProps) {
  const { data = [] } = useQuery(timeZonesQuery)
  const zones = [...new Set(['UTC', ...(data.length ? data : [value])])]
  return <Select {...rest} data={zones} value={value} onChange={onChange} searchable limit={MAX_OPTIONS} />
}
