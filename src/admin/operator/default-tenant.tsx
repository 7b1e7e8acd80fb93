import { Button, Group, Select, Text, TextInput } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { fetchData } from '../api/client'
import { showNotice } from '../ui/notices'
import { ProblemMessage } from '../ui/problem-message'
import { operatorApi, refetchOperator } from './operator-api'

const MODES = [
  { value: 'local', label: 'At localhost and IP addresses' },
  { value: 'everywhere', label: 'At every host of no tenant' },
  { value: 'none', label: 'Nowhere' },
]

type Mode = 'local' | 'everywhere' | 'none'

/** Shows and changes which tenant answers where neither a header nor a host names one. */
export function DefaultTenantForm() {
  const { data, error } = useQuery({
    queryKey: ['operator', 'default-tenant'],
    queryFn: () => fetchData(operatorApi.GET('/operator/default-tenant')),
  })
  const [changed, setChanged] = useState<{ mode?: Mode; tenant?: string }>({})
  const choose = useMutation({
    mutationFn: (body: { mode: Mode; tenant: string | null }) =>
      fetchData(operatorApi.PUT('/operator/default-tenant', { body })),
    onSuccess: async () => {
      await refetchOperator()
      setChanged({})
      showNotice('Saved.')
    },
  })
  if (error) return <ProblemMessage error={error} />
  if (!data) return null
  const mode = changed.mode ?? data.mode
  const tenant = changed.tenant ?? data.tenant ?? ''
  return (
    <form
      aria-label="Default tenant"
      onSubmit={(event) => {
        event.preventDefault()
        choose.mutate({ mode, tenant: mode === 'none' ? null : tenant || null })
      }}
    >
      <Text size="sm" fw={500}>
        Default tenant
      </Text>
      <Text size="sm" c="dimmed" mb="xs">
        {data.source === 'setting'
          ? 'ATOLL_DEFAULT_TENANT is set and prevails over the choice here.'
          : 'This tenant answers requests that neither a header nor a host gives to another one.'}
      </Text>
      <Group align="end" gap="xs" mb="md">
        <Select
          size="xs"
          label="It answers"
          data={MODES}
          value={mode}
          onChange={(value) => value && setChanged({ ...changed, mode: value as Mode })}
          allowDeselect={false}
        />
        {mode !== 'none' && (
          <TextInput
            size="xs"
            label="Tenant ID"
            placeholder="The first tenant"
            value={tenant}
            onChange={(event) => setChanged({ ...changed, tenant: event.currentTarget.value.trim() })}
          />
        )}
        <Button size="xs" type="submit" loading={choose.isPending}>
          Save
        </Button>
      </Group>
      {choose.error && <ProblemMessage error={choose.error} />}
    </form>
  )
}
