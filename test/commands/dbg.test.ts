import { test } from 'bun:test'
import { createTempFolder, createTenantByCli, startAtoll, apiCaller } from '../fakes/cli'
import { readFileSync } from 'node:fs'
test('x', async () => {
  const at = { at: createTempFolder(), env: { ATOLL_WORKERS: '3', ATOLL_LOG_LEVEL: 'warn' } }
  await createTenantByCli(at, 'acme')
  const server = await startAtoll(at)
  console.log(readFileSync(`/proc/${server.pid}/task/${server.pid}/children`, 'utf8'), new TextDecoder().decode(Bun.spawnSync(['bash','-c',`ss -tlnp | grep ${server.port}; ps --ppid ${server.pid} -o args`]).stdout))
  const rs = await Promise.all(Array.from({length:40}, () => fetch(server.url+'/api/signin', {method:'POST', keepalive:false, headers:{tenant:'acme','content-type':'application/json',connection:'close'}, body: JSON.stringify({username:'nobody',password:'x',authType:'oauth'})}).then(r=>r.status)))
  console.log(rs.join())
  await server.end('SIGTERM')
  console.log((await server.logged).slice(0, 1500))
}, 60000)
