/* fake_nvml.c: a test double posing as libnvidia-ml.so.1 (own code, no NVIDIA source).
 * build: gcc -O2 -shared -fPIC -Wl,-soname,libnvidia-ml.so.1 -o libnvidia-ml.so.1 fake_nvml.c
 * use:   LD_LIBRARY_PATH=<dir> python ...           see README.md for the state file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/stat.h>
#define MAXG 16
#define MAXM 8
#define MAXE 64
typedef unsigned u; typedef unsigned long long ull; typedef int R;
enum { OK=0, INVAL=2, NOTSUP=3, NOTFOUND=6, SMALL=7, TIMEOUT=10, LOST=15, VERS=25 };
/* handle layout: kind 'G' = physical GPU, 'M' = MIG device */
typedef struct { int kind, gpu, gi; u slices; ull mem; } Dev;
typedef struct { ull total, used; u util, mutil, temp, mtemp, power, limit, sm, mclk, pstate, pcie_gen, pcie_w;
  ull throttle, energy0, ecc_c, ecc_u, nvl_err; u remap_c, remap_u, remap_pend, remap_fail, mig, nvl_down, nproc;
  u pid[8]; ull pmem[8]; int pgi[8]; } G;
static Dev gd[MAXG], md[MAXG][MAXM]; static G g[MAXG]; static int nmig[MAXG], N=-1, refs; static ull t0;
static struct { int gpu; char sym[64]; int code; } errs[MAXE]; static int nerr;
static struct { int gpu; ull code, seq; } xid[MAXE]; static int nxid;
static int init_err; static ull dcalls[MAXG]; ull fakeNvmlDeviceCalls(int i){return dcalls[i];} static int hang[MAXG]; static int devfd[MAXG+1]; static int capfree=-1;
#include <fcntl.h>
static u delay_us; static char model[96]="NVIDIA H100 80GB HBM3", driver[64]="580.95.05", host[64]="node000";
static time_t mt; static long mns; static ull calls, last_chk; static int eager=-1;
static ull now(void){ struct timespec t; clock_gettime(CLOCK_MONOTONIC,&t); return t.tv_sec*1000000000ull+t.tv_nsec; }
static void defaults(void){ const char *e=getenv("FAKE_NVML_GPUS"); N=e?atoi(e):8; if(N>MAXG)N=MAXG;
  if((e=getenv("FAKE_NVML_MODEL"))) snprintf(model,sizeof model,"%s",e);
  if((e=getenv("FAKE_NVML_HOST"))) snprintf(host,sizeof host,"%s",e);
  memset(hang,0,sizeof hang); init_err=0; nerr=nxid=0; delay_us=0; memset(g,0,sizeof g); memset(nmig,0,sizeof nmig);
  for(int i=0;i<N;i++){ gd[i]=(Dev){'G',i,-1,8,0}; G*p=&g[i]; p->total=85520809984ull; p->used=i%3?40ull<<30:1ull<<29;
    p->util=i%3?90-3*i:0; p->mutil=p->util/2; p->temp=35+p->util/3; p->mtemp=p->temp+8; p->power=70000+6000*p->util;
    p->limit=700000; p->sm=p->util?1980:345; p->mclk=2619; p->pstate=0; p->pcie_gen=5; p->pcie_w=16; p->throttle=p->util?0:1;
    p->energy0=1000000000ull*(i+1); if(p->util){ p->nproc=1; p->pid[0]=getpid(); p->pmem[0]=p->used-(1ull<<29); p->pgi[0]=-1; } } }
static void load(void){ const char*f=getenv("FAKE_NVML_STATE"); struct stat s; if(N<0){defaults(); t0=now();} if(!f||stat(f,&s)) return;
  if(s.st_mtim.tv_sec==mt && s.st_mtim.tv_nsec==mns) return; mt=s.st_mtim.tv_sec; mns=s.st_mtim.tv_nsec;
  defaults(); FILE*h=fopen(f,"r"); if(!h) return; char l[256],k[64],v[128]; int i;
  while(fgets(l,sizeof l,h)){ char sym[64]; int c; ull a,b; u sl;
    if(*l=='#'||*l=='\n') continue;
    if(sscanf(l,"err %d %63s %d",&i,sym,&c)==3&&nerr<MAXE){ errs[nerr].gpu=i; strcpy(errs[nerr].sym,sym); errs[nerr++].code=c; continue; }
    if(sscanf(l,"xid %d %llu %llu",&i,&a,&b)==3&&nxid<MAXE){ xid[nxid].gpu=i; xid[nxid].code=a; xid[nxid++].seq=b; continue; }
    if(sscanf(l,"delay_us %u",&delay_us)==1) continue; if(sscanf(l,"hang %d",&i)==1){ hang[i]=1; continue; } { int q; if(sscanf(l,"init_err %d",&q)==1){ init_err=q; continue; } }
    if(sscanf(l,"model %95[^\n]",model)==1||sscanf(l,"driver %63s",driver)==1||sscanf(l,"gpus %d",&N)==1) continue;
    if(sscanf(l,"mig %d %u %llu",&i,&sl,&a)==3&&i>=0&&i<MAXG&&nmig[i]<MAXM){ int m=nmig[i]++; md[i][m]=(Dev){'M',i,m+1,sl,a<<20}; g[i].mig=1; continue; }
    if(sscanf(l,"proc %d %llu %llu %d",&i,&a,&b,&c)==4&&i>=0&&i<MAXG&&g[i].nproc<8){ u n=g[i].nproc++; g[i].pid[n]=a; g[i].pmem[n]=b<<20; g[i].pgi[n]=c; continue; }
    if(sscanf(l,"%d %63s %127s",&i,k,v)!=3||i<0||i>=MAXG) continue;
    G*p=&g[i]; ull x=strtoull(v,0,0);
#define K(n,e) if(!strcmp(k,n)){ e; continue; }
    K("mem_total",p->total=x<<20) K("mem_used",p->used=x<<20) K("util",p->util=x) K("mem_util",p->mutil=x) K("temp",p->temp=x)
    K("mem_temp",p->mtemp=x) K("power_mw",p->power=x) K("limit_mw",p->limit=x) K("sm_mhz",p->sm=x) K("throttle",p->throttle=x)
    K("ecc_corr",p->ecc_c=x) K("ecc_uncorr",p->ecc_u=x) K("remap_pending",p->remap_pend=x) K("remap_failed",p->remap_fail=x)
    K("remap_corr",p->remap_c=x) K("remap_uncorr",p->remap_u=x) K("nvlink_down",p->nvl_down=x) K("nvlink_err",p->nvl_err=x)
    K("pcie_gen",p->pcie_gen=x) K("pcie_width",p->pcie_w=x) K("mig_mode",p->mig=x) K("procs",p->nproc=0) }
  fclose(h); }
static R pre(Dev*d,const char*fn){ calls++; if(eager<0) eager=getenv("FAKE_NVML_EAGER")!=0; ull t=now(); if(t-last_chk>(eager?0ull:20000000ull)){ last_chk=t; load(); }  /* state re-read at most every 20 ms */
  if(delay_us) usleep(delay_us); int gi=d?d->gpu:-1; if(gi>=0){ dcalls[gi]++; while(hang[gi]){ usleep(5000); load(); } }
  for(int i=0;i<nerr;i++) if((errs[i].gpu==gi||errs[i].gpu==-1)&&(!strcmp(errs[i].sym,"*")||!strcmp(errs[i].sym,fn))) return errs[i].code;
  return OK; }
#define P(d) do{ R r_=pre((Dev*)(d),__func__); if(r_) return r_; }while(0)
#define PHYS(d) do{ P(d); if(((Dev*)(d))->kind!='G') return NOTSUP; }while(0)
#define S(d) G*p=&g[((Dev*)(d))->gpu]; (void)p
static R str(char*b,u n,const char*s){ if(strlen(s)+1>n) return SMALL; strcpy(b,s); return OK; }
static void load(void);
R nvmlInitWithFlags(u f){ (void)f; load(); if(init_err) return init_err; if(!refs++){ const char*e=getenv("FAKE_NVML_DEV"); if(e){ char p[300]; snprintf(p,300,"%s/nvidiactl",e); devfd[MAXG]=open(p,O_RDONLY); } } return OK; }
R nvmlInit_v2(void){ return nvmlInitWithFlags(0); }
R nvmlInit(void){ return nvmlInitWithFlags(0); }
R nvmlShutdown(void){ if(refs) refs--; if(!refs) for(int i=0;i<=MAXG;i++) if(devfd[i]>0){ close(devfd[i]); devfd[i]=0; } return OK; }
static void attach(int i){ const char*e=getenv("FAKE_NVML_DEV"); if(e&&!devfd[i]){ char p[300]; snprintf(p,300,"%s/nvidia%d",e,i); devfd[i]=open(p,O_RDONLY); } }
const char*nvmlErrorString(R r){ switch(r){case 0:return"Success";case 3:return"Not Supported";case 6:return"Not Found";case 15:return"GPU is lost";default:return"Fake NVML error";} }
R nvmlSystemGetDriverVersion(char*b,u n){ P(0); return str(b,n,driver); }
R nvmlSystemGetNVMLVersion(char*b,u n){ P(0); return str(b,n,"13.580.95.05"); }
R nvmlSystemGetCudaDriverVersion(int*v){ P(0); *v=13000; return OK; }
R nvmlSystemGetCudaDriverVersion_v2(int*v){ return nvmlSystemGetCudaDriverVersion(v); }
R nvmlSystemGetProcessName(u pid,char*b,u n){ (void)pid; return str(b,n,"python"); }
R nvmlDeviceGetCount_v2(u*c){ P(0); *c=N; return OK; }
R nvmlDeviceGetHandleByIndex_v2(u i,Dev**d){ P(0); if((int)i>=N) return INVAL; *d=&gd[i]; R r=pre(*d,__func__); if(!r) attach(i); return r; }
static void uuid(Dev*d,char*b){ u h=5381; for(char*c=host;*c;c++) h=h*33+*c;
  sprintf(b,"%s-%08x-0000-4000-8000-%08x%04x",d->kind=='M'?"MIG":"GPU",h,d->kind=='M'?0xabc00000u+d->gi:0xdef00000u,d->gpu); }
R nvmlDeviceGetUUID(Dev*d,char*b,u n){ P(d); char s[80]; uuid(d,s); return str(b,n,s); }
R nvmlDeviceGetHandleByUUID(const char*s,Dev**o){ P(0); char b[80]; for(int i=0;i<N;i++){ uuid(&gd[i],b); if(!strcmp(b,s)){*o=&gd[i];return OK;}
  for(int m=0;m<nmig[i];m++){ uuid(&md[i][m],b); if(!strcmp(b,s)){*o=&md[i][m];return OK;} } } return NOTFOUND; }
static void bus(int i,char*b){ sprintf(b,"00000000:%02X:00.0",0x18+i*16); }
R nvmlDeviceGetHandleByPciBusId_v2(const char*s,Dev**o){ P(0); char b[32]; for(int i=0;i<N;i++){ bus(i,b); if(!strcasecmp(b,s)||!strcasecmp(b+4,s)){*o=&gd[i]; R r=pre(*o,__func__); if(!r) attach(i); return r;} } return NOTFOUND; }
R nvmlDeviceGetName(Dev*d,char*b,u n){ P(d); if(d->kind=='M'){ char s[160]; sprintf(s,"%s MIG %ug.%llugb",model,d->slices,(d->mem+(1<<30)-1)>>30); return str(b,n,s);} return str(b,n,model); }
R nvmlDeviceGetSerial(Dev*d,char*b,u n){ PHYS(d); char s[32]; sprintf(s,"16540230%05d",d->gpu); return str(b,n,s); }
R nvmlDeviceGetIndex(Dev*d,u*i){ P(d); *i=d->kind=='G'?d->gpu:d->gi-1; return OK; }
R nvmlDeviceGetMinorNumber(Dev*d,u*i){ PHYS(d); *i=d->gpu; return OK; }
typedef struct { char legacy[16]; u domain,bus,device,id,sub; char busId[32]; } Pci;
R nvmlDeviceGetPciInfo_v3(Dev*d,Pci*o){ P(d); memset(o,0,sizeof*o); bus(d->gpu,o->busId); snprintf(o->legacy,16,"%.15s",o->busId+4); o->bus=0x18+d->gpu*16; o->id=0x233010de; o->sub=0x16c110de; return OK; }
R nvmlDeviceGetMemoryInfo(Dev*d,ull*m){ P(d); S(d); m[0]=d->kind=='M'?d->mem:p->total; m[2]=d->kind=='M'?d->mem/4:p->used; m[1]=m[0]-m[2]; return OK; }
R nvmlDeviceGetMemoryInfo_v2(Dev*d,u*v){ P(d); if(*v!=0x02000028) return VERS; ull m[3]; R r=nvmlDeviceGetMemoryInfo(d,m); if(r) return r;
  ull*q=(ull*)(v+2); q[0]=m[0]; q[1]=600ull<<20; q[2]=m[1]>q[1]?m[1]-q[1]:0; q[3]=m[2]; return OK; }
R nvmlDeviceGetBAR1MemoryInfo(Dev*d,ull*m){ P(d); m[0]=128ull<<30; m[2]=1ull<<20; m[1]=m[0]-m[2]; return OK; }
#define GET(name,T,expr) R name(Dev*d,T*o){ PHYS(d); S(d); *o=(expr); return OK; }
R nvmlDeviceGetUtilizationRates(Dev*d,u*o){ PHYS(d); S(d); if(p->mig) return NOTSUP; o[0]=p->util; o[1]=p->mutil; return OK; }
R nvmlDeviceGetEncoderUtilization(Dev*d,u*a,u*b){ PHYS(d); *a=0; *b=167000; return OK; }
R nvmlDeviceGetDecoderUtilization(Dev*d,u*a,u*b){ PHYS(d); *a=0; *b=167000; return OK; }
R nvmlDeviceGetTemperature(Dev*d,int s,u*o){ PHYS(d); S(d); if(s) return INVAL; *o=p->temp; return OK; }
R nvmlDeviceGetTemperatureV(Dev*d,int*t){ PHYS(d); S(d); if((u)t[0]!=0x100000C) return VERS; t[2]=p->temp; return OK; }
R nvmlDeviceGetTemperatureThreshold(Dev*d,int t,u*o){ PHYS(d); static const u v[]={92,89,95,87,0,0,0,0}; if(t<0||t>7||!v[t]) return NOTSUP; *o=v[t]; return OK; }
GET(nvmlDeviceGetPowerUsage,u,p->power) GET(nvmlDeviceGetPowerManagementLimit,u,p->limit) GET(nvmlDeviceGetEnforcedPowerLimit,u,p->limit)
GET(nvmlDeviceGetPowerManagementDefaultLimit,u,700000) GET(nvmlDeviceGetPerformanceState,int,p->pstate) GET(nvmlDeviceGetPowerState,int,p->pstate)
GET(nvmlDeviceGetTotalEnergyConsumption,ull,p->energy0+(now()-t0)/1000000ull*p->power/1000)
GET(nvmlDeviceGetCurrentClocksThrottleReasons,ull,p->throttle) GET(nvmlDeviceGetCurrentClocksEventReasons,ull,p->throttle)
GET(nvmlDeviceGetSupportedClocksThrottleReasons,ull,0x1ff) GET(nvmlDeviceGetPcieReplayCounter,u,0) GET(nvmlDeviceGetPersistenceMode,int,1)
GET(nvmlDeviceGetComputeMode,int,0) GET(nvmlDeviceGetCurrPcieLinkGeneration,u,p->pcie_gen) GET(nvmlDeviceGetCurrPcieLinkWidth,u,p->pcie_w)
GET(nvmlDeviceGetMaxPcieLinkGeneration,u,5) GET(nvmlDeviceGetMaxPcieLinkWidth,u,16) GET(nvmlDeviceGetNumGpuCores,u,16896) GET(nvmlDeviceGetDisplayActive,int,0)
GET(nvmlDeviceGetArchitecture,u,9) GET(nvmlDeviceGetMemoryBusWidth,u,5120) GET(nvmlDeviceGetMaxMigDeviceCount,u,7) GET(nvmlDeviceGetSupportedEventTypes,ull,0x1d)
R nvmlDeviceGetDisplayMode(Dev*d,int*o){ PHYS(d); *o=0; return OK; }
R nvmlDeviceGetDriverModel_v2(Dev*d,int*a,int*b){ PHYS(d); (void)a;(void)b; return NOTSUP; }   /* Windows only */
R nvmlDeviceGetDriverModel(Dev*d,int*a,int*b){ return nvmlDeviceGetDriverModel_v2(d,a,b); }
R nvmlDeviceGetConfComputeMemSizeInfo(Dev*d,ull*o){ PHYS(d); o[0]=o[1]=0; return OK; }
R nvmlDeviceGetFanSpeed(Dev*d,u*o){ PHYS(d); (void)o; return NOTSUP; }      /* HGX boards have no fan */
R nvmlDeviceGetPcieThroughput(Dev*d,int c,u*o){ PHYS(d); S(d); *o=(c?2000:1000)*p->util; return OK; }
R nvmlDeviceGetClockInfo(Dev*d,int c,u*o){ PHYS(d); S(d); *o=c==2?p->mclk:p->sm; return OK; }
R nvmlDeviceGetMaxClockInfo(Dev*d,int c,u*o){ PHYS(d); *o=c==2?2619:1980; return OK; }
R nvmlDeviceGetCudaComputeCapability(Dev*d,int*a,int*b){ P(d); *a=9; *b=0; return OK; }
R nvmlDeviceGetViolationStatus(Dev*d,int t,ull*o){ PHYS(d); (void)t; o[0]=now()/1000; o[1]=0; return OK; }
R nvmlDeviceGetEccMode(Dev*d,int*c,int*q){ PHYS(d); *c=*q=1; return OK; }
R nvmlDeviceGetTotalEccErrors(Dev*d,int t,int c,ull*o){ PHYS(d); S(d); (void)c; *o=t?p->ecc_u:p->ecc_c; return OK; }
R nvmlDeviceGetMemoryErrorCounter(Dev*d,int t,int c,int l,ull*o){ PHYS(d); S(d); (void)c; *o=l==2?(t?p->ecc_u:p->ecc_c):0; return OK; }
R nvmlDeviceGetRemappedRows(Dev*d,u*a,u*b,u*c,u*e){ PHYS(d); S(d); *a=p->remap_c; *b=p->remap_u; *c=p->remap_pend; *e=p->remap_fail; return OK; }
R nvmlDeviceGetMigMode(Dev*d,u*c,u*q){ PHYS(d); S(d); *c=*q=p->mig; return OK; }
R nvmlDeviceIsMigDeviceHandle(Dev*d,u*o){ P(d); *o=d->kind=='M'; return OK; }
R nvmlDeviceGetMigDeviceHandleByIndex(Dev*d,u i,Dev**o){ PHYS(d); if((int)i>=nmig[d->gpu]) return NOTFOUND; *o=&md[d->gpu][i]; return OK; }
R nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Dev*d,Dev**o){ P(d); if(d->kind!='M') return INVAL; *o=&gd[d->gpu]; return OK; }
R nvmlDeviceGetGpuInstanceId(Dev*d,u*o){ P(d); if(d->kind!='M') return NOTSUP; *o=d->gi; return OK; }
R nvmlDeviceGetComputeInstanceId(Dev*d,u*o){ P(d); if(d->kind!='M') return NOTSUP; *o=0; return OK; }
R nvmlDeviceGetAttributes_v2(Dev*d,u*a){ P(d); if(d->kind!='M') return NOTSUP; u s=d->slices; u v[8]={16*s,s,1,0,1,0,s,s}; memcpy(a,v,32); *(ull*)(a+8)=d->mem>>20; return OK; }
typedef struct { u pid; ull mem; u gi,ci; } Proc;
static R procs(Dev*d,u*n,Proc*o){ S(d); u k=0; for(u i=0;i<p->nproc;i++){ if(d->kind=='M'&&p->pgi[i]!=d->gi) continue; if(o&&k<*n) o[k]=(Proc){p->pid[i],p->pmem[i],p->pgi[i],p->pgi[i]<0?~0u:0}; k++; }
  R r=k>*n?SMALL:OK; *n=k; return r; }
R nvmlDeviceGetComputeRunningProcesses_v3(Dev*d,u*n,Proc*o){ P(d); return procs(d,n,o); }
R nvmlDeviceGetComputeRunningProcesses_v2(Dev*d,u*n,Proc*o){ P(d); return procs(d,n,o); }
R nvmlDeviceGetGraphicsRunningProcesses_v3(Dev*d,u*n,Proc*o){ P(d); (void)o; *n=0; return OK; }
R nvmlDeviceGetGraphicsRunningProcesses_v2(Dev*d,u*n,Proc*o){ P(d); (void)o; *n=0; return OK; }
R nvmlDeviceGetMPSComputeRunningProcesses_v3(Dev*d,u*n,Proc*o){ P(d); (void)o; *n=0; return OK; }
typedef struct { u pid; ull ts; u sm,mem,enc,dec; } PU;
R nvmlDeviceGetProcessUtilization(Dev*d,PU*o,u*n,ull since){ PHYS(d); S(d); (void)since; if(!p->nproc) return NOTFOUND; if(!o||*n<p->nproc){*n=p->nproc;return SMALL;}
  for(u i=0;i<p->nproc;i++) o[i]=(PU){p->pid[i],(ull)time(0)*1000000,p->util/p->nproc,p->mutil/p->nproc,0,0}; *n=p->nproc; return OK; }
R nvmlDeviceGetNvLinkState(Dev*d,u l,int*o){ PHYS(d); S(d); if(l>=18) return INVAL; *o=!(p->nvl_down>>l&1); return OK; }
R nvmlDeviceGetNvLinkErrorCounter(Dev*d,u l,int c,ull*o){ PHYS(d); S(d); (void)c; if(l>=18) return INVAL; *o=p->nvl_err; return OK; }
R nvmlDeviceGetNvLinkRemoteDeviceType(Dev*d,u l,int*o){ PHYS(d); if(l>=18) return INVAL; *o=1; return OK; }
R nvmlDeviceGetNvLinkRemotePciInfo_v2(Dev*d,u l,Pci*o){ PHYS(d); if(l>=18) return INVAL; memset(o,0,sizeof*o); sprintf(o->busId,"00000000:%02X:00.0",4+l%4); return OK; }
R nvmlDeviceGetTopologyCommonAncestor(Dev*a,Dev*b,int*o){ P(a); *o=a->gpu/4==b->gpu/4?40:50; return OK; }
typedef struct { u id,scope; long long ts,lat; u type; R ret; union{double d; u ui; ull ul; int i;} v; } FV;
R nvmlDeviceGetFieldValues(Dev*d,int n,FV*f){ PHYS(d); S(d); for(int i=0;i<n;i++,f++){ f->ts=now()/1000; f->lat=1; f->ret=OK; f->type=3; f->v.ul=0;
  switch(f->id){ case 82: f->type=1; f->v.ui=p->mtemp; break; case 91: f->type=1; f->v.ui=18; break; case 83: f->v.ul=p->energy0; break;
   case 138: case 139: case 140: case 141: f->v.ul=(now()-t0)/1000000*p->util; break; case 185: case 186: f->type=1; f->v.ui=p->power; break;
   case 38: case 45: case 52: case 59: f->v.ul=p->nvl_err; break; case 94: f->type=1; break; case 230: f->type=1; f->v.ui=p->remap_pend?1:0; break;
   case 74: case 75: case 76: case 77: case 78: case 79: case 80: case 81: break; default: f->ret=NOTSUP; } } return OK; }
R nvmlGpmQueryDeviceSupport(Dev*d,u*s){ PHYS(d); s[1]=1; return OK; }
R nvmlGpmSampleAlloc(void**s){ *s=calloc(1,16); return OK; }
R nvmlGpmSampleFree(void*s){ free(s); return OK; }
R nvmlGpmSampleGet(Dev*d,ull*s){ PHYS(d); s[0]=now(); s[1]=d->gpu; return OK; }
R nvmlGpmMigSampleGet(Dev*d,u gi,ull*s){ P(d); (void)gi; s[0]=now(); s[1]=d->gpu; return OK; }
typedef struct { u id; R ret; double v; const char*a,*b,*c; } GM; typedef struct { u ver,n; ull*s1,*s2; GM m[1]; } GMG;
R nvmlGpmMetricsGet(GMG*q){ P(0); if(!q->s1||!q->s2) return INVAL; G*p=&g[q->s2[1]]; for(u i=0;i<q->n;i++){ GM*m=&q->m[i]; m->ret=OK; m->a="fake"; m->b="fake gpm"; m->c="%";
  switch(m->id){ case 1: case 2: m->v=p->util; break; case 3: m->v=p->util*.6; break; case 5: m->v=p->util*.45; break; case 10: m->v=p->mutil; break; default: m->v=0; } } return OK; }
typedef struct { ull seen, mask; } ES; typedef struct { Dev*d; ull type,data; u gi,ci; } ED;
R nvmlEventSetCreate(ES**s){ *s=calloc(1,sizeof(ES)); return OK; }
R nvmlDeviceRegisterEvents(Dev*d,ull t,ES*s){ PHYS(d); s->mask|=1ull<<d->gpu; (void)t; return OK; }
R nvmlEventSetWait_v2(ES*s,ED*o,u ms){ ull end=now()+ms*1000000ull; do{ load(); for(int i=0;i<nxid;i++) if(xid[i].seq>s->seen&&(s->mask>>xid[i].gpu&1)){ s->seen=xid[i].seq;
  *o=(ED){&gd[xid[i].gpu],8,xid[i].code,~0u,~0u}; return OK; } if(now()>=end) break; usleep(ms<20?ms*1000:20000); }while(1); return TIMEOUT; }
R nvmlEventSetFree(ES*s){ free(s); return OK; }
ull fakeNvmlCalls(void){ return calls; }

typedef struct { u version,id,p2p,slices,count,mp,ce,dec,enc,jpeg,ofa; ull mb; char name[96]; } PI;
static const struct { u slices; u mb; u count; const char*n; } PR[]={{1,9856,7,"1g.10gb"},{2,20096,3,"2g.20gb"},{3,40448,2,"3g.40gb"},{4,40448,1,"4g.40gb"},{7,81153,1,"7g.80gb"}};
R nvmlDeviceGetGpuInstanceProfileInfoV(Dev*d,u k,PI*o){ PHYS(d); if(k>4) return NOTSUP; o->id=k+19; o->slices=PR[k].slices; o->count=PR[k].count; o->mb=PR[k].mb; sprintf(o->name,"MIG %s",PR[k].n); return OK; }
R nvmlDeviceGetGpuInstanceProfileInfoByIdV(Dev*d,u id,PI*o){ return nvmlDeviceGetGpuInstanceProfileInfoV(d,id-19,o); }
R nvmlDeviceGetGpuInstanceRemainingCapacity(Dev*d,u id,u*o){ PHYS(d); u used=0; for(int m=0;m<nmig[d->gpu];m++) used+=md[d->gpu][m].slices; *o=(7-used)/PR[id-19].slices; return OK; }
R nvmlDeviceGetGpuInstanceById(Dev*d,u gi,Dev**o){ PHYS(d); for(int m=0;m<nmig[d->gpu];m++) if(md[d->gpu][m].gi==(int)gi){ *o=&md[d->gpu][m]; return OK; } return NOTFOUND; }
typedef struct { Dev*d; u id,profile,start,size; } GII;
R nvmlGpuInstanceGetInfo(Dev*m,GII*o){ o->d=&gd[m->gpu]; o->id=m->gi; o->profile=19; for(u k=0;k<5;k++) if(PR[k].slices==m->slices) o->profile=19+k; u s=0; for(int j=0;j<nmig[m->gpu];j++){ if(&md[m->gpu][j]==m) break; s+=md[m->gpu][j].slices; } o->start=s; o->size=m->slices; return OK; }
