import { Box, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { installationQuery, queryClient } from '../api/queries'
import { LimitForm } from '../limits/limit-form'
import { QuotaList } from '../limits/quota-list'
import { showNotice } from '../ui/notices'
import { PanelSection } from '../ui/panel-section'
import { ProblemMessage } from '../ui/problem-message'
import { FormScreen } from './form-screen'
import { changeConfiguration, limitsConfigurationQuery, quotasQuery } from './settings-queries'

const FORM_ID = 'limits'

/** How many requests a guest and a user of the tenant may make per minute, and what the tenant uses of its quotas. */
export function LimitSettings() {
  const { data: installation, error: installationError } = useQuery(installationQuery)
  const { data: chosen, error } = useQuery(limitsConfigurationQuery)
  const allowed = installation?.rateLimits
  const finish = async () => {
    await queryClient.invalidateQueries({ queryKey: limitsConfigurationQuery.queryKey })
    showNotice('Saved.')
  }
  return (
    <FormScreen
      title="Limits"
      request={{
        ...{ method: 'PUT', path: '/api/configurations/limits-configuration' },
        body: { metadata: { guests: { reads: 100, writes: 20 } } },
      }}
      source="Kept in the limits-configuration. These limits only lower what the operator allows."
      error={installationError ?? error}
      form={allowed ? FORM_ID : undefined}
      more={<Quotas />}
    >
      <Text size="sm" c="dimmed" mb="md">
        {allowed === null
          ? 'The operator has switched off the limits of requests (ATOLL_RATE_LIMITS).'
          : 'How many requests a guest, who is a network address, and a user may make per minute. Each API token counts as a user. Costly calls are exports, charts, counted lists, AI and lambdas.'}
      </Text>
      {allowed && chosen && (
        <LimitForm
          id={FORM_ID}
          chosen={chosen}
          allowed={allowed}
          describe={(limit) => `At most ${limit}.`}
          draftKey="settings-limits"
          save={(metadata) => changeConfiguration('limits-configuration', metadata)}
          onSaved={finish}
        />
      )}
    </FormScreen>
  )
}

function Quotas() {
  const { data, error } = useQuery(quotasQuery)
  return (
    <Box mt="xl">
      <PanelSection title="Quotas" order={2}>
        <Text size="sm" c="dimmed" mb="md">
          What the tenant has and uses. The operator sets how much it may be; days and months are those of UTC.
        </Text>
        {error && <ProblemMessage error={error} />}
        {data && <QuotaList quotas={data} />}
      </PanelSection>
    </Box>
  )
}
