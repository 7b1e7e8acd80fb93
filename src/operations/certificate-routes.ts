import { Elysia, t } from 'elysia'
import { ProblemShape } from '../core/problem'
import * as certificates from '../tls/certificates'
import { Certificate } from '../tls/shapes'
import { operatorRoute } from './operator-access'

const refusals = { 401: ProblemShape, 403: ProblemShape, 429: ProblemShape }

/** The routes of the operator for the certificates of HTTPS. */
export const certificateRoutes = new Elysia({ prefix: '/operator/certificates', tags: ['operations'] })
  .get('/', () => certificates.list(), {
    ...operatorRoute(
      'listCertificates',
      'List the certificates of HTTPS',
      'Those of files, and those that are ordered for the hosts of tenants. The ones with problems come first.',
    ),
    response: { 200: t.Array(Certificate), ...refusals },
  })
  .post('/:host/renew', ({ params: { host } }) => certificates.renew(host), {
    ...operatorRoute(
      'renewCertificate',
      'Order the certificate of a host now',
      'It is ordered within half a minute, also when an earlier order has failed. The result is in the list.',
    ),
    params: t.Object({ host: t.String() }),
    response: { 200: Certificate, ...refusals, 404: ProblemShape, 409: ProblemShape },
  })
