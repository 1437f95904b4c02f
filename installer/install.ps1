# Opens the setup assistant for PyTorch on a Windows that need not have Python. It brings uv, which brings a Python of its
# own, and starts the assistant with it; pasted again, it opens the assistant again.
#
#   powershell -ExecutionPolicy ByPass -c "irm https://github.com/OWNER/PROJECT/releases/latest/download/install.ps1 | iex"
#
# Any command may follow, where the script lies in a file: .\install.ps1 setup --yes
#
# It needs no administrator, changes no settings and writes only into your own data and cache folders. A uv on PATH is
# used as it is. Proxy variables, UV_DEFAULT_INDEX, UV_PYTHON_INSTALL_MIRROR and all other settings of uv hold.
# SETUP_ASSISTANT_SOURCE names what is installed: a requirement, such as "torch-setup-assistant[lab] @ FILE-OR-ADDRESS".
# Exit codes are those of the assistant; 1 where something could not be fetched, 3 where this machine is not supported.
#
# For Windows PowerShell 5.1 and newer. All of it is ASCII: `irm` of 5.1 takes a file that names no encoding for Latin-1.
& {
    $ErrorActionPreference = 'Stop'
    $ProgressPreference = 'SilentlyContinue'  # its bar slows the downloads of 5.1 down many times
    $version = '0.13.9'
    # SHA-256 of uv's wheels. `renew.py` writes these lines here, in install.sh and in pyz/__main__.py.
    $wheels = @'
linux-x86_64 uv-0.13.9-py3-none-musllinux_1_1_x86_64.whl 2c45530751517d6c3bbc69a19473f6effe47cce047bede01ffd8af7ea7b36b25
linux-aarch64 uv-0.13.9-py3-none-manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64.whl 5435c5ce14a56431208ca0996416d310f1598e8c2c8ba707688985a16bb82dbe
macos-x86_64 uv-0.13.9-py3-none-macosx_10_12_x86_64.whl c16ed11e013557536b3e60065f1b912f6407bd6518e041b961e23ef9e6b4fbf5
macos-arm64 uv-0.13.9-py3-none-macosx_11_0_arm64.whl 66c512266d633bef48384a1f53003f41f2a8e7b36fe6e7fbfd3e0fd52d96fa63
windows-x86_64 uv-0.13.9-py3-none-win_amd64.whl 6a44b2ed8111d2f60d2b92627c5dccda3f7ed7570b18ce115e569cd68c28246b
windows-arm64 uv-0.13.9-py3-none-win_arm64.whl eeb92051c2123b9730c46b04cc843cfa4bc7d7b0aec56df431a2215ef4cb0273
'@
    # English and Chinese.
    $sentences = @{
        fetching = @(
            'Fetching uv {0}, which brings Python (this once).'
            '\u6b63\u5728\u4e0b\u8f7d uv {0}\uff0c\u7531\u5b83\u51c6\u5907 Python\uff08\u4ec5\u6b64\u4e00\u6b21\uff09\u3002'
        )
        preparing = @(
            'Getting the assistant ready; the first time this takes a minute or two.'
            '\u6b63\u5728\u51c6\u5907\u5b89\u88c5\u52a9\u624b\uff0c\u7b2c\u4e00\u6b21\u9700\u8981\u4e00\u4e24\u5206\u949f\u3002'
        )
        machine = @(
            'There is no PyTorch for this machine ({0}, {1}). If there is one after all, put uv on PATH (https://docs.astral.sh/uv/) and start again.'
            '\u6ca1\u6709\u9002\u5408\u8fd9\u53f0\u673a\u5668\uff08{0}\uff0c{1}\uff09\u7684 PyTorch\u3002\u5982\u679c\u786e\u5b9e\u6709\uff0c\u8bf7\u5148\u5b89\u88c5 uv\uff08https://docs.astral.sh/uv/\uff09\u5e76\u52a0\u5165 PATH\uff0c\u7136\u540e\u91cd\u65b0\u5f00\u59cb\u3002'
        )
        folder = @(
            '{0} cannot be written to. Set {1} to a folder of yours that has 2 GB free, then start again.'
            '\u65e0\u6cd5\u5199\u5165 {0}\u3002\u8bf7\u628a {1} \u8bbe\u4e3a\u60a8\u81ea\u5df1\u7684\u3001\u6709 2 GB \u7a7a\u95f2\u7a7a\u95f4\u7684\u6587\u4ef6\u5939\uff0c\u7136\u540e\u91cd\u65b0\u5f00\u59cb\u3002'
        )
        noexec = @(
            'uv does not run in {0}; perhaps no program may. Set {1} to another folder of yours, then start again.'
            'uv \u65e0\u6cd5\u5728 {0} \u4e2d\u8fd0\u884c\uff0c\u53ef\u80fd\u662f\u8be5\u6587\u4ef6\u5939\u4e0d\u5141\u8bb8\u8fd0\u884c\u7a0b\u5e8f\u3002\u8bf7\u628a {1} \u8bbe\u4e3a\u60a8\u81ea\u5df1\u7684\u5176\u4ed6\u6587\u4ef6\u5939\uff0c\u7136\u540e\u91cd\u65b0\u5f00\u59cb\u3002'
        )
        unreachable = @(
            '{0} cannot be fetched. Check the network and the proxy (HTTPS_PROXY), or set UV_DEFAULT_INDEX to another package index, then start again.'
            '\u65e0\u6cd5\u4e0b\u8f7d {0}\u3002\u8bf7\u68c0\u67e5\u7f51\u7edc\u548c\u4ee3\u7406\uff08HTTPS_PROXY\uff09\uff0c\u6216\u7528 UV_DEFAULT_INDEX \u6307\u5b9a\u5176\u4ed6\u8f6f\u4ef6\u5305\u7d22\u5f15\uff08\u4f8b\u5982 https://pypi.tuna.tsinghua.edu.cn/simple\uff09\uff0c\u7136\u540e\u91cd\u65b0\u5f00\u59cb\u3002'
        )
        absent = @(
            '{0} does not have {1}. Set UV_DEFAULT_INDEX to another package index, or put uv on PATH (https://docs.astral.sh/uv/), then start again.'
            '{0} \u6ca1\u6709 {1}\u3002\u8bf7\u7528 UV_DEFAULT_INDEX \u6307\u5b9a\u5176\u4ed6\u8f6f\u4ef6\u5305\u7d22\u5f15\uff0c\u6216\u5b89\u88c5 uv\uff08https://docs.astral.sh/uv/\uff09\u5e76\u52a0\u5165 PATH\uff0c\u7136\u540e\u91cd\u65b0\u5f00\u59cb\u3002'
        )
        damaged = @(
            '{0} arrived damaged, or was changed on the way, and was thrown away. Start again; if that does not help, use another network or set UV_DEFAULT_INDEX to another package index.'
            '{0} \u4e0b\u8f7d\u540e\u5df2\u635f\u574f\u6216\u5728\u9014\u4e2d\u88ab\u6539\u52a8\uff0c\u5df2\u4e22\u5f03\u3002\u8bf7\u91cd\u65b0\u5f00\u59cb\uff1b\u5982\u4ecd\u4e0d\u884c\uff0c\u8bf7\u6362\u4e00\u4e2a\u7f51\u7edc\uff0c\u6216\u7528 UV_DEFAULT_INDEX \u6307\u5b9a\u5176\u4ed6\u8f6f\u4ef6\u5305\u7d22\u5f15\u3002'
        )
        uv = @(
            'uv could not get Python or the assistant ready; its own words are above. Often it is the network: check it and the proxy (HTTPS_PROXY), or set UV_DEFAULT_INDEX to another package index and UV_PYTHON_INSTALL_MIRROR to another source of Python, then start again.'
            'uv \u65e0\u6cd5\u51c6\u5907\u597d Python \u6216\u5b89\u88c5\u52a9\u624b\uff0c\u539f\u56e0\u89c1\u4e0a\u65b9 uv \u7684\u63d0\u793a\u3002\u591a\u534a\u662f\u7f51\u7edc\u95ee\u9898\uff1a\u8bf7\u68c0\u67e5\u7f51\u7edc\u548c\u4ee3\u7406\uff08HTTPS_PROXY\uff09\uff0c\u6216\u7528 UV_DEFAULT_INDEX \u6307\u5b9a\u5176\u4ed6\u8f6f\u4ef6\u5305\u7d22\u5f15\uff08\u4f8b\u5982 https://pypi.tuna.tsinghua.edu.cn/simple\uff09\uff0c\u7528 UV_PYTHON_INSTALL_MIRROR \u6307\u5b9a Python \u7684\u955c\u50cf\uff0c\u7136\u540e\u91cd\u65b0\u5f00\u59cb\u3002'
        )
        windows = @(
            'This script is for Windows; on Linux and macOS use install.sh.'
            '\u8fd9\u4e2a\u811a\u672c\u53ea\u9002\u7528\u4e8e Windows\uff1bLinux \u548c macOS \u8bf7\u4f7f\u7528 install.sh\u3002'
        )
        restricted = @(
            'A policy restricts PowerShell on this computer, so this script cannot work. Ask whoever manages it for uv (https://docs.astral.sh/uv/), then type: uvx --python 3.12 --from torch-setup-assistant[lab] torch-setup-assistant lab'
            '\u8fd9\u53f0\u7535\u8111\u7684\u7b56\u7565\u9650\u5236\u4e86 PowerShell\uff0c\u672c\u811a\u672c\u65e0\u6cd5\u5de5\u4f5c\u3002\u8bf7\u8ba9\u7ba1\u7406\u5458\u5b89\u88c5 uv\uff08https://docs.astral.sh/uv/\uff09\uff0c\u7136\u540e\u8f93\u5165\uff1auvx --python 3.12 --from torch-setup-assistant[lab] torch-setup-assistant lab'
        )
    }

    function Get-Sentence($key) {
        $english, $chinese = $sentences[$key]
        $chosen = if ((Get-UICulture).Name -like 'zh*') { [regex]::Unescape($chinese) } else { $english }
        $chosen -f $args
    }

    function Write-Sentence($key) {
        [Console]::Error.WriteLine((Get-Sentence $key @args))
    }

    function Stop-Here($code, $key) {
        Write-Sentence $key @args
        throw "stopped with $code"
    }

    function Hide-Password($address) {
        $address -replace '//[^/]*@', '//'
    }

    # Fetches an address through the proxy that is set, else through Windows' own.
    function Get-File($address, $file) {
        $options = @{ Uri = $address; OutFile = $file; UseBasicParsing = $true }
        if ($env:HTTPS_PROXY -and $address -like 'https:*') {
            $options.Proxy = $env:HTTPS_PROXY
        }
        try {
            Invoke-WebRequest @options
        } catch {
            [Console]::Error.WriteLine($_.Exception.Message)
            Stop-Here 1 unreachable (Hide-Password $address)
        }
    }

    # A program that cannot be started at all is an error to catch.
    function Test-Program($program) {
        try {
            [void](& $program --version)
            $LASTEXITCODE -eq 0
        } catch {
            $false
        }
    }

    function Get-Architecture {
        if ($env:OS -ne 'Windows_NT') {
            Stop-Here 3 windows
        }
        # Not from $env: an emulated PowerShell on an ARM computer is told AMD64 there.
        $key = 'HKLM:\SYSTEM\CurrentControlSet\Control\Session Manager\Environment'
        $name = (Get-ItemProperty $key).PROCESSOR_ARCHITECTURE
        $name.ToLower() -replace '^amd64$', 'x86_64'
    }

    function Expand-Uv($part) {
        $architecture = Get-Architecture
        $line = ($wheels -split '\r?\n') -like "windows-$architecture *" | Select-Object -First 1
        if (-not $line) {
            Stop-Here 3 machine windows $architecture
        }
        $wheel, $expected = ($line -split ' ')[1, 2]
        Write-Sentence fetching $version
        Get-File "$index/uv/" "$part\page.html"
        $page = [IO.File]::ReadAllText("$part\page.html")
        if ($page -notmatch ('href=["'']([^"''#]*' + [regex]::Escape($wheel) + ')')) {
            Stop-Here 1 absent (Hide-Password "$index/uv/") $wheel
        }
        $address = New-Object Uri -ArgumentList ([Uri]"$index/uv/"), $Matches[1]
        Get-File $address.AbsoluteUri "$part\uv.zip"
        $digest = [Security.Cryptography.SHA256]::Create().ComputeHash([IO.File]::ReadAllBytes("$part\uv.zip"))
        if ([BitConverter]::ToString($digest).Replace('-', '') -ne $expected) {
            Stop-Here 1 damaged $wheel
        }
        Add-Type -AssemblyName System.IO.Compression.FileSystem
        [IO.Compression.ZipFile]::ExtractToDirectory("$part\uv.zip", "$part\uv")
        Move-Item "$part\uv\uv-$version.data\scripts\uv.exe" "$part\uv.exe"
    }

    function Get-Uv {
        $found = Get-Command uv -CommandType Application -ErrorAction SilentlyContinue | Select-Object -First 1
        if ($found -and (Test-Program $found.Path)) {
            return $found.Path
        }
        # Whom Windows trusts, such as a company's proxy, uv may trust, too.
        if (-not $env:UV_SYSTEM_CERTS) {
            $env:UV_SYSTEM_CERTS = 'true'
        }
        $folder = "$env:LOCALAPPDATA\pytorch-setup-assistant\uv-$version"
        if (Test-Program "$folder\uv.exe") {
            return "$folder\uv.exe"
        }
        $part = "$folder\part.$PID"
        try {
            [void](New-Item -ItemType Directory -Force $part)
        } catch {
            Stop-Here 1 folder $folder LOCALAPPDATA
        }
        try {
            Expand-Uv $part
            if (-not (Test-Program "$part\uv.exe")) {
                Stop-Here 1 noexec $folder LOCALAPPDATA
            }
            Move-Item -Force "$part\uv.exe" "$folder\uv.exe"
        } finally {
            Remove-Item -Recurse -Force $part -ErrorAction SilentlyContinue
        }
        "$folder\uv.exe"
    }

    function Start-Assistant {
        $uv = Get-Uv
        $python = if ($env:UV_PYTHON) { $env:UV_PYTHON } else { '3.12' }
        $source = if ($env:SETUP_ASSISTANT_SOURCE) { $env:SETUP_ASSISTANT_SOURCE } else { 'torch-setup-assistant[lab]' }
        $run = 'tool', 'run', '--python', $python, '--from', $source, 'python', '-P', '-m', 'torch_setup_assistant'
        Write-Sentence preparing
        [void](& $uv @run --version)
        if ($LASTEXITCODE) {
            Stop-Here 1 uv
        }
        # The assistant shows its commands as they can be typed here.
        $typed = if ($uv -match '^[\w\\:.-]+$') { $uv } else { "& '" + $uv.Replace("'", "''") + "'" }
        $env:SETUP_ASSISTANT_STARTED_AS = "$typed tool run --python $python --from ""$source"" python -P -m torch_setup_assistant"
        & $uv @run @args
    }

    if ($ExecutionContext.SessionState.LanguageMode -ne 'FullLanguage') {
        throw (Get-Sentence restricted)
    }
    # Windows PowerShell 5.1 offers TLS 1.0 where nobody says otherwise.
    [Net.ServicePointManager]::SecurityProtocol = [Net.ServicePointManager]::SecurityProtocol -bor [Net.SecurityProtocolType]::Tls12
    $indexes = $env:UV_DEFAULT_INDEX, $env:UV_INDEX_URL, $env:PIP_INDEX_URL, 'https://PYPI/simple'
    $index = ($indexes | Where-Object { $_ } | Select-Object -First 1).TrimEnd('/')
    $words = @($args | Where-Object { $_ })
    if (-not $words) {
        $words = @('lab')
    }
    $kept = $env:UV_DEFAULT_INDEX, $env:UV_SYSTEM_CERTS, $env:SETUP_ASSISTANT_STARTED_AS
    try {
        # What pip calls the index, uv does not know: https://docs.astral.sh/uv/pip/compatibility/
        if ($env:PIP_INDEX_URL) {
            $env:UV_DEFAULT_INDEX = $index
        }
        Start-Assistant @words
        $code = $LASTEXITCODE
    } catch {
        if ("$_" -notmatch '^stopped with (\d)$') {
            throw
        }
        $code = [int]$Matches[1]
    } finally {
        $env:UV_DEFAULT_INDEX, $env:UV_SYSTEM_CERTS, $env:SETUP_ASSISTANT_STARTED_AS = $kept
    }
    # Where the line was pasted at a prompt without `powershell -c`, `exit` would close the window.
    $global:LASTEXITCODE = $code
    if ($PSCommandPath -or ([Environment]::GetCommandLineArgs() -match '^[-/](c|co.*|e|ec|en.*)$')) {
        exit $code
    }
} @args
